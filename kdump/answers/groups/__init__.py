"""Consumer groups of every type, from ``__consumer_offsets`` and ``__share_group_state``."""
