"""Bare values, and lines after a format string like kcat's."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from kdump.formats.record import LARGE
from kdump.printers.format_template import headers
from kdump.printers.record_rows import RecordRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.formats.record import Record
    from kdump.printers.format_template import Letter
    from kdump.printers.kernel_rows import FormatRows
    from kdump.rows.redaction import Redactor
    from kdump.rows.selection import SelectedBatch


class Plain(RecordRows):
    """Prints every record after a template of texts and letters."""

    def __init__(self, out: BinaryIO, template: Sequence[bytes | Letter], *, redactor: Redactor | None = None) -> None:
        super().__init__(out, redactor=redactor)
        self.template = template

    def records(self, item: SelectedBatch) -> None:
        for record in item.records:
            if record.size >= LARGE:
                self._large(item, record)
                continue
            parts = [part if isinstance(part, bytes) else part.write(item, record) for part in self.template]
            self.out.write(b"".join(parts))

    def _large(self, item: SelectedBatch, record: Record) -> None:
        """Print a large record field by field, its headers one by one."""
        for part in self.template:
            if isinstance(part, bytes):
                self.out.write(part)
            elif part.letter == "h":
                for number, header in enumerate(record.headers):
                    self.out.write(b"," if number else b"")
                    self.out.write(headers((header,)))
            else:
                self.out.write(part.write(item, record))

    def kernel_rows(self) -> FormatRows:
        from kdump.printers.kernel_rows import FormatRows  # for rows of the kernel alone

        return FormatRows(self.template, self.redactor)
