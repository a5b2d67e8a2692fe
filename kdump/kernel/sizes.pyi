from array import array

from kdump.kernel.cursor import Cursor

class Sizes(Cursor):
    def columns(self) -> tuple[array[int], array[int], array[int]]: ...
