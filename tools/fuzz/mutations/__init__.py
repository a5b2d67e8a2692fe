"""Small real files, and seeded ways to break them: bits, lengths, counts, attributes, varints, streams, order.

    mutant = mutations.make(seed=1, number=17)      # the same each time
    mutant.kind, mutant.subject, mutant.files       # files: name -> bytes

Each kind of mutation is a function of a random generator and the bytes of a file. The other modules have these
functions, by the kind of file.
"""

from random import Random
from typing import NamedTuple

from tools.fuzz.mutations import segments, state

SHARE_OF_STATE = 0.25
"""The share of mutants that are not segments."""


class Mutant(NamedTuple):
    """A broken file, and the valid files that it needs."""

    number: int
    kind: str
    subject: str
    target: str
    """The name of the file to dump."""
    files: dict[str, bytes]

    @property
    def topic(self) -> str:
        """The topic of the subject."""
        return self.subject.split("/")[-2].rpartition("-")[0]

    @property
    def suffix(self) -> str:
        """The kind of the dumped file."""
        return self.target.rpartition(".")[2]


def make(seed: int, number: int) -> Mutant:
    """Return one mutant. The seed and number determine it."""
    random = Random(f"{seed}:{number}")
    return of_state(random, number) if random.random() < SHARE_OF_STATE else of_segment(random, number)


def of_segment(random: Random, number: int) -> Mutant:
    """Break a segment."""
    subject = random.choice(sorted(segments.segments()))
    data = segments.segments()[subject]
    while True:
        kind = random.choice(segments.KINDS)
        broken = kind(random, data)
        if broken != data:
            target = subject.rpartition("/")[2]
            return Mutant(number, kind.__name__, subject, target, {target: broken})


def of_state(random: Random, number: int) -> Mutant:
    """Break a file beside a log, or one of the files that it is compared with."""
    wanted = random.choice(sorted(state.SHAPES))
    subject = random.choice([name for name in sorted(state.subjects()) if name.endswith(f".{wanted}")])
    files = dict(state.subjects()[subject])
    target = subject.rpartition("/")[2]
    broken = random.choice(sorted(files)) if random.random() < 0.3 else target
    data = files[broken]
    while files[broken] == data:
        if broken.endswith(".log"):
            change = random.choice(segments.KINDS)
            files[broken] = change(random, data)
        else:
            row_change = random.choice(state.KINDS)
            files[broken] = row_change(random, state.SHAPES[broken.rpartition(".")[2]], data) if data else b"\0"
            change = row_change
    return Mutant(number, f"{change.__name__} of {broken.rpartition('.')[2]}", subject, target, files)
