"""Consumer groups of every type: what ``__consumer_offsets`` and ``__share_group_state`` say of them."""
