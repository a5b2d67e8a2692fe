"""Rebuilds a cluster: writes log dirs for new nodes from the remaining log dirs (``kdump rebuild-cluster``).

The steps, in order:

- ``volumes``: ``survey()`` finds the log dirs, their ids, partitions, checkpoints and copies of the metadata log.
- ``metadata``: ``found()`` returns the image of the lost cluster (``ClusterImage``), from the metadata log or,
  without one, from folders and ``partition.metadata``.
- ``cluster``: the whole plan. ``choose(volumes, image)`` returns a ``PartitionPlan`` (``partition_plan``) for each
  partition of this image. ``one_partition`` plans one partition, with ``copy_scan`` (the valid batches of a copy) and
  ``merging``.
- ``nodes``: the new nodes, and the replicas that each node has.
- ``coordinators``: groups and transactions of the new cluster; the number of partitions of the coordinators' topics.
- ``first_start``: warnings about data that the new brokers delete or hide at their first start.
- ``copying``: writes the folders of a ``PartitionPlan`` into the log dir of a node.
- ``metadata``: ``snapshot()`` returns the bytes of the new snapshot.
- ``publishing``: writes the log dirs, ``node-N.properties`` and ``account.json`` (``account``).
"""
