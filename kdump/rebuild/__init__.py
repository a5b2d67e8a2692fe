"""Rebuilds a cluster: writes log dirs for new nodes from the remaining log dirs (``kdump rebuild-cluster``).

The steps, in order:

- ``volumes``: ``survey()`` finds the log dirs, their ids, partitions, checkpoints and copies of the metadata log.
- ``metadata``: ``found()`` returns the image of the lost cluster (in a ``LostCluster``), from the metadata log; if it
  is absent or damaged, also from folders.
- ``nodes``: ``assign()`` returns the nodes of each partition, the leader first.
- ``cluster``: ``choose(volumes, image)`` returns a ``PartitionPlan`` (``partition_plan``) for each partition of this
  image. ``one_partition`` plans one partition, with ``copy_scan`` (the valid batches of a copy) and ``merging``. If the
  disk has room, ``copying`` writes each partition as soon as it is planned, else after all plans.
- ``first_start``: ``look()`` finds the data that the new brokers delete or hide at their first start.
- ``coordinators``: ``read()`` returns the groups and transactions of the new cluster.
- ``metadata``: ``rebuilt()`` returns the image of the new cluster.
- ``publishing``: writes log dirs (``copying``), ``lost+found``, ``node-N.properties``, ``account.json`` (``account``).
"""
