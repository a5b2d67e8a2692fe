"""A reporter that keeps its calls."""


class Kept:
    """The reports: each a kind and a text."""

    def __init__(self):
        self.all = []

    def damaged_range(self, file, damage):
        self.all.append(("damage", f"{file}: byte {damage.position}: {damage}"))

    def damage(self, text):
        self.all.append(("damage", text))

    def reads(self, size):
        pass

    def has_read(self, size):
        pass

    def wrong_index(self, text):
        self.all.append(("wrong", text))

    def note(self, text):
        self.all.append(("note", text))

    def fail(self, error):
        self.all.append(("fail", str(error)))

    def add_status(self, status):
        self.all.append(("status", status))
