"""Errors of payloads and schemas. They become a ``problem`` of the line, never an exception of a command."""

from __future__ import annotations


class UndecodableError(ValueError):
    """A payload does not fit its schema; the text is one sentence for people."""


class SchemaError(ValueError):
    """A schema's text cannot be understood."""


class MissingReferenceError(SchemaError):
    """A schema that is referred to is not in the log."""


class MismatchError(UndecodableError):
    """A payload fits its own schema, but not the schema of the columns."""
