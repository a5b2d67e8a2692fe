"""Errors of payloads and schemas. Commands report them as the ``problem`` of a line."""

from __future__ import annotations


class UndecodableError(ValueError):
    """A payload does not match its schema; the text is one sentence for people."""


class SchemaError(ValueError):
    """A schema is malformed."""


class MissingReferenceError(SchemaError):
    """A referenced schema is not in the log."""


class MismatchError(UndecodableError):
    """A payload matches its own schema, but not the schema of the columns."""
