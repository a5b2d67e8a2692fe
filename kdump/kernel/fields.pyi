from array import array

from kdump.kernel.lines import Lines

PLACES: int
FINDS: tuple[str, ...]
FIND: int
COMPACT: int
NULLABLE: int
TAGGED: int

class Fields(Lines):
    def __init__(self, code: array[int]) -> None: ...
