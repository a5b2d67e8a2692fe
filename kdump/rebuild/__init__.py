"""A cluster from the log dirs that are left of it: new log dirs that nodes start on (``kdump rebuild-cluster``).

The steps, a module each:

- ``volumes``: ``survey()`` finds the log dirs, their ids, partitions, checkpoints and copies of the metadata log.
- ``metadata``: ``found()`` returns the image of the cluster that is lost (``ClusterImage``), from the metadata log or,
  without one, from folders and ``partition.metadata``.
- ``plan``: ``choose(volumes, image)`` returns a ``PartitionPlan`` (``planned``) for each partition of that image.
  ``one_partition`` makes one, of ``copy_scan`` (the valid batches of a copy), ``lineage`` (the leader epochs that the
  cluster went on with) and ``merging``; ``known_offsets`` tells where lost partitions go on.
- ``nodes``: the new nodes, and the replicas that each holds.
- ``warnings``: what the new brokers would do to the data when they start.
- ``copying``: writes the folders of a ``PartitionPlan`` into the log dir of a node.
- ``metadata``: ``snapshot()`` returns the bytes of the new snapshot.
- ``account``: ``account.json``.
"""
