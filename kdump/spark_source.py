"""The public interface of the Spark source ``kdump`` (:mod:`kdump.spark.source`): add it by :func:`register`."""

from kdump.spark.source import register

__all__ = ["register"]
