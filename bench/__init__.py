"""How fast kdump is beside Kafka's own tool: ``python -m bench --help``."""
