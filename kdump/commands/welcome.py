"""What kdump prints where it is given nothing to do."""

from __future__ import annotations

from typing import Final

from kdump import __version__

WELCOME: Final = f"""\
kdump {__version__} reads Apache Kafka's files on disk, with no broker and no JVM.
It never changes what it reads.

  kdump /var/kafka           what is in these log dirs, and what to run next

The broker does not start, or a disk is in doubt:
  kdump check /var/kafka
Records are missing, or a consumer stops:
  kdump explain orders-0@1234 --in /var/kafka
What was in a topic:
  kdump dump /var/kafka --topic orders --since -2h
The disk is full:
  kdump du /var/kafka
The cluster is lost, only volumes are left:
  kdump rebuild-cluster /backup/broker-1 /backup/broker-2 --plan

  kdump help                 every incident, with the command for it
  kdump --help               all commands
  kdump help files           as kafka-dump-log.sh: kdump --files FILE,FILE,...
"""
"""At most 24 lines of 80 columns."""
