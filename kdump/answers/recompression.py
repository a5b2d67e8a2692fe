"""Computes the sizes of topics in other codecs, for ``kdump stats``: it compresses data of magic 2, or a sample of it.

The checksums of batches select the sample, so every run gives the same answer, with any number of processes. The ratio
of the sample gives the estimate. The error is 1.96 standard errors plus :attr:`Sample.unseen`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from kdump.errors import DamageError, UsageError
from kdump.formats.record_layout import BATCH_HEADER, MAGIC_2
from kdump.primitives import compression
from kdump.records.magic_2 import Batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.answers.collector import Place
    from kdump.records.record_batch import Batches

SAMPLE: Final = 64 << 20
"""A sample has about 1 to 1.5 times this many bytes. A partition below twice this size is compressed whole."""


class Target(NamedTuple):
    """A codec, and its level (None for the default)."""

    codec: int
    level: int | None = None

    @property
    def name(self) -> str:
        """The codec and its level, such as ``zstd`` or ``gzip:9``."""
        name = compression.NAMES[self.codec]
        return name if self.level is None else f"{name}:{self.level}"


def target(text: str) -> Target:
    """Return the target for a text such as ``gzip``, ``zstd:19`` or ``none``. Raises UsageError for another text."""
    name, colon, level = text.strip().partition(":")
    if name not in compression.NAMES:
        raise UsageError(f"{name!r} is not a codec (use {', '.join(compression.NAMES)})")
    codec = compression.NAMES.index(name)
    if not colon:
        return Target(codec)
    low, high = compression.LEVELS.get(codec, (0, -1))
    try:
        number = int(level)
    except ValueError:
        number = high + 1
    if not low <= number <= high:
        levels = f"the levels of {name} are {low} to {high}" if low <= high else f"{name} has no levels"
        raise UsageError(f"{text!r}: {levels}")
    return Target(codec, number)


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """The estimated bytes of a topic in another codec. ``sampled`` is the number of batches that were compressed.

    The true size differs from ``bytes`` by at most ``error_bytes`` (95% confidence), 0 if all were compressed.
    """

    kind: ClassVar[str] = "whatIf"
    topic: str
    codec: str
    bytes: int
    sampled: int
    current_bytes: int
    error_bytes: int


@dataclass
class Sample:
    """Sums over the batches of a partition, and over a sample of them. x: stored bytes, y: bytes in the new codec.

    Fields above ``fixed`` leave out batches that no codec changes. Fields below ``fixed`` count only the sample.
    """

    batches: int = 0
    size: int = 0
    squares: int = 0
    fixed: int = 0
    """The bytes of batches whose size no codec changes: control batches, and batches of magic 0 and 1."""
    taken: int = 0
    x: int = 0
    y: int = 0
    xx: int = 0
    ratios: float = 0.0
    """The sum of y / x of the batches in the sample."""
    ratio_squares: float = 0.0

    def meet(self, sizes: Iterable[int]) -> None:
        for size in sizes:
            self.batches += 1
            self.size += size
            self.squares += size * size

    def take(self, x: int, y: int) -> None:
        self.taken += 1
        self.x, self.y, self.xx = self.x + x, self.y + y, self.xx + x * x
        self.ratios += y / x
        self.ratio_squares += (y / x) ** 2

    @property
    def estimate(self) -> float:
        """The estimated bytes of all batches in the new codec."""
        return self.fixed + (self.size * self.y / self.x if self.x else self.size)

    @property
    def variance(self) -> float:
        """The variance of the estimate. It is assumed that the ratio of a batch does not depend on its size."""
        if self.taken == self.batches:
            return 0.0
        if self.taken < 2:
            return float(self.size) ** 2
        ratio, rest = self.y / self.x, self.size - self.x
        spread = self.ratio_squares - 2 * ratio * self.ratios + self.taken * ratio * ratio
        spread = max(0.0, spread) / (self.taken - 1)
        return spread * (rest * rest * self.xx / (self.x * self.x) + self.squares - self.xx)

    @property
    def unseen(self) -> float:
        """The number of bytes to add to the estimate for batches of a kind that the sample lacks.

        With n batches in the sample, at most 3 / n of the others are such batches at 95% confidence (rule of three). It
        is assumed that no codec makes them smaller.
        """
        if self.taken == self.batches or not self.taken:
            return 0.0
        return min(1.0, 3 / self.taken) * (self.size - self.x) * max(0.0, 1 - self.y / self.x)


class WhatIf:
    """Compresses a sample of the batches with each target, and estimates the sizes of topics."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets = tuple(targets)
        self._samples: dict[tuple[str, int], list[Sample]] = {}
        self._current: list[Sample] = []
        self._every = 1

    def begin(self, place: Place) -> None:
        if not self._targets or place.key is None:
            return
        self._every = max(1, place.partition.size // SAMPLE)
        self._current = []
        for number in range(len(self._targets)):
            sample = Sample()
            self._current.append(sample)
            self._samples.setdefault((place.key[0], number), []).append(sample)

    def add(self, batches: Batches, taken: int) -> int:
        """Add up to ``taken`` batches before a damaged one; return their number. Raises DamageError for a lone one."""
        if not self._current:
            return taken
        if batches.first.magic < MAGIC_2 or batches.first.is_control:
            for sample in self._current:
                sample.fixed += sum(batches.column("size", 0, taken))
            return taken
        for row, crc in enumerate(batches.column("crc", 0, taken)):
            if crc % self._every == 0 and isinstance(batch := batches.batch(row), Batch):
                try:
                    self._pack(batch)
                except DamageError:
                    if batches.batch_count == 1:
                        raise
                    taken = row
                    break
        sizes = batches.column("size", 0, taken)
        for sample in self._current:
            sample.meet(sizes)
        return taken

    def _pack(self, batch: Batch) -> None:
        """Compress a batch of the sample with each target. Raises DamageError if it cannot be decompressed."""
        data, start = batch.payload()
        body = bytes(data[start:])
        for target_, sample in zip(self._targets, self._current, strict=True):
            packed = body if not target_.codec else compression.compress(target_.codec, body, level=target_.level)
            sample.take(batch.size, BATCH_HEADER.size + len(packed))

    def end(self) -> None:
        self._current = []

    def merge(self, other: WhatIf) -> None:
        for key, samples in other._samples.items():
            self._samples.setdefault(key, []).extend(samples)

    def answer(self) -> Iterator[WhatIfAnswer]:
        for (topic, number), samples in sorted(self._samples.items()):
            yield WhatIfAnswer(
                topic=topic,
                codec=self._targets[number].name,
                bytes=round(sum(sample.estimate for sample in samples)),
                sampled=sum(sample.taken for sample in samples),
                current_bytes=sum(sample.size + sample.fixed for sample in samples),
                error_bytes=round(
                    1.96 * sqrt(sum(sample.variance for sample in samples)) + sum(sample.unseen for sample in samples)
                ),
            )
