"""Rebuild a cluster from its remaining log dirs as log dirs for new nodes (``kdump rebuild-cluster``).

Each step is a module:

- ``volumes``: ``survey()`` finds the log dirs, their ids, partitions, checkpoints and copies of the metadata log.
- ``metadata``: ``found()`` returns the image of the lost cluster (``ClusterImage``), from the metadata log or,
  without one, from folders and ``partition.metadata``.
- ``plan``: ``choose(volumes, image)`` returns a ``PartitionPlan`` (``planned``) for each partition of that image.
  ``one_partition`` plans one, with ``copy_scan`` (the valid batches of a copy), ``lineage`` (the leader epochs of the
  cluster) and ``merging``. ``known_offsets`` returns the start offsets of lost partitions.
- ``nodes``: the new nodes, and the replicas of each.
- ``warnings``: data that the new brokers would delete or hide at their first start.
- ``copying``: writes the folders of a ``PartitionPlan`` into the log dir of a node.
- ``metadata``: ``snapshot()`` returns the bytes of the new snapshot.
- ``account``: ``account.json``.
"""
