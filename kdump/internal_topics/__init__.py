"""Records of Kafka's own topics: their schemas, the reader of these schemas, :func:`decode`, and hiding of secrets."""

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
"""Topic -> the option of DumpLogSegments that decodes its records. If several are given, the first one here counts."""
