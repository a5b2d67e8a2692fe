"""The face of the Spark source ``kdump``: :func:`register` makes it known to a session (:mod:`kdump.spark.source`)."""

from kdump.spark.source import register

__all__ = ["register"]
