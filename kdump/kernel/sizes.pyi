from array import array

from kdump.kernel.cursor import Cursor

class Sizes(Cursor):
    def largest(self) -> int: ...
    def columns(self) -> tuple[array[int], array[int], array[int]]: ...
