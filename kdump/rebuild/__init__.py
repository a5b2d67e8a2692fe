"""Rebuild a cluster from its remaining log dirs as log dirs for new nodes (``kdump rebuild-cluster``).

The steps, in order:

- ``volumes``: ``survey()`` finds the log dirs, their ids, partitions, checkpoints and copies of the metadata log.
- ``metadata``: ``found()`` returns the image of the lost cluster (``ClusterImage``), from the metadata log or,
  without one, from folders and ``partition.metadata``.
- ``plan``: ``choose(volumes, image)`` returns a ``PartitionPlan`` (``partition_plan``) for each partition of that
  image. ``one_partition`` plans one, with ``copy_scan`` (the valid batches of a copy) and ``merging``.
- ``nodes``: the new nodes, and the replicas of each.
- ``coordinators``: groups and transactions of the new cluster; the number of partitions of the coordinators' topics.
- ``first_start``: data that the new brokers delete or hide at their first start, with the warnings about it.
- ``copying``: writes the folders of a ``PartitionPlan`` into the log dir of a node.
- ``metadata``: ``snapshot()`` returns the bytes of the new snapshot.
- ``publishing``: writes the log dirs, ``node-N.properties`` and ``account.json`` (``account``).
"""
