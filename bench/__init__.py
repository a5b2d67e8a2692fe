"""How fast kdump is compared with Kafka's own tool: ``python -m bench --help``."""
