from kdump.formats.record import Record
from kdump.kernel.cursor import Cursor

class Records(Cursor):
    def records(self, most: int) -> list[Record]: ...
