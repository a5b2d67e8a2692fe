"""The interface of the Spark source ``kdump``: :func:`register` adds it to a session (:mod:`kdump.spark.source`)."""

from kdump.spark.source import register

__all__ = ["register"]
