"""Records of Kafka's own topics: one schema notation, one interpreter, and :func:`decode`.

The names of the topics are declared here; each schema text has its own as ``TOPIC``.
"""

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
CLUSTER_METADATA = "__cluster_metadata"
REMOTE_LOG_METADATA = "__remote_log_metadata"
SHARE_GROUP_STATE = "__share_group_state"
DECODER_SWITCHES = {
    CONSUMER_OFFSETS: "offsets-decoder",
    TRANSACTION_STATE: "transaction-log-decoder",
    CLUSTER_METADATA: "cluster-metadata-decoder",
    REMOTE_LOG_METADATA: "remote-log-metadata-decoder",
    SHARE_GROUP_STATE: "share-group-state-decoder",
}
"""Topic -> the option of DumpLogSegments that decodes its records. The first of several options wins."""
