"""Checks the files of a log dir outside its partition folders, and returns the facts in them about a partition."""

import posixpath
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.checks.evidence import INCREDIBLE
from kdump.checks.repair_commands import aside
from kdump.errors import SILENT, DamageError, Reporter, StoreError, UnreadableError, first_of, raise_it
from kdump.findings import Finding, Level, remark, text_of
from kdump.findings.codes import Code
from kdump.formats import clean_shutdown, meta_properties
from kdump.formats.checkpoint_text import NumberDamageError
from kdump.formats.meta_properties import MetaProperties
from kdump.log_dirs import file_names, log_dir_state
from kdump.log_dirs.local import LOCAL, folder_identity
from kdump.log_dirs.log_dir_state import LogDirState, LogDirStates
from kdump.log_dirs.partition import Partition
from kdump.primitives.wire import Bytes

if TYPE_CHECKING:
    from kdump.log_dirs.files import Files


def _properties(data: Bytes) -> MetaProperties:
    properties = meta_properties.read(data)
    meta_properties.check(properties)
    return properties


READERS: Final = {
    **log_dir_state.READERS,
    file_names.META_PROPERTIES: _properties,
    file_names.CLEAN_SHUTDOWN: clean_shutdown.read,
}


class Effect(Enum):
    """The effect of a broken file on a start: the first sentence of the advice, and whether the start fails."""

    STOPS = ("A broker that cannot read this file does not start.", True)
    STOPS_A_READER = ("A broker does not start with this file.", True)
    STOPS_A_NODE = ("A node that cannot read this file does not start.", True)
    LEAVES_OUT = ("A broker that cannot read this file starts without this log dir.", False)
    UNREAD = ("The node loads no logs from this log dir, and does not read this file.", False)
    READS_AS_EMPTY = ("A broker starts as if the file had no entries.", False)
    NONE = ("", False)

    @property
    def sentence(self) -> str:
        return self.value[0]

    @property
    def is_fatal(self) -> bool:
        return self.value[1]


NO_BOOTSTRAP: Final = (
    "With the node stopped, move the file away: a node that has the metadata log starts without this file."
)


class IfBroken(NamedTuple):
    """The effect of a broken file on a start, and the advice. Messages have the effect first."""

    advice: str
    effect: Effect = Effect.STOPS
    of_number: Effect = Effect.READS_AS_EMPTY
    """The effect of a malformed number (NumberDamageError). ``effect`` is the effect of other damage."""
    in_dispensable: Effect = Effect.LEAVES_OUT
    """The effect that replaces :attr:`Effect.STOPS` if the broker can start without the log dir."""

    def effect_of(self, damage: DamageError, *, dispensable: bool) -> Effect:
        found = self.of_number if isinstance(damage, NumberDamageError) else self.effect
        return self.in_dispensable if dispensable and found is Effect.STOPS else found


IF_BROKEN: Final = {
    file_names.META_PROPERTIES: IfBroken(
        "Write the file again with the ids of the cluster and of this broker.",
        in_dispensable=Effect.NONE,  # the dry start reports content that prevents the start
    ),
    file_names.CLEAN_SHUTDOWN: IfBroken(
        "The existence of the file marks a clean stop. Its content, from 3.7 on, is the broker epoch.", Effect.NONE
    ),
    file_names.RECOVERY_POINTS: IfBroken(
        "If the file is missing, a broker that starts after an unclean stop reads all logs."
    ),
    file_names.HIGH_WATERMARKS: IfBroken(
        "If the file is missing, high watermarks begin at the log start offset and rise again."
    ),
    file_names.LOG_STARTS: IfBroken("If the file is missing, records that a client deleted are served again."),
    file_names.CLEANER_OFFSETS: IfBroken("If the file is missing, compaction begins again at the log start."),
}


class LogDir(NamedTuple):
    """The facts about one partition in the checkpoints and other files of its log dir. None: no file has the fact.

    ``known``: the parent folder is a log dir. ``clean``: it has ``.kafka_cleanshutdown``.
    """

    known: bool = False
    clean: bool = False
    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start: int | None = None
    first_dirty: int | None = None
    """The cleaner's first unread offset: 0 if its checkpoint lacks the partition, None without a valid checkpoint."""
    cleaned: bool | None = None
    """Whether the cleaner checkpoint has the partition; None without a valid one."""
    properties: MetaProperties | None = None


class LogDirs(LogDirStates):
    """The log dirs of the checked partitions. Findings on their files are made once, not for each partition.

    ``dispensable``: the shown paths of the log dirs that may be offline when their broker starts. ``not_loaded``: those
    of the log dirs whose logs their node does not load. ``report`` receives broken and unreadable files too.
    """

    def __init__(
        self,
        dispensable: frozenset[str] = frozenset(),
        not_loaded: frozenset[str] = frozenset(),
        report: Reporter = SILENT,
    ) -> None:
        super().__init__(report, READERS)
        self._dispensable, self._not_loaded = dispensable, not_loaded
        self._wrong_files: set[str] = set()
        self._identities: dict[tuple[Files, str], object] = {}
        self._checked: set[object] = set()
        self._compared: set[str] = set()
        self._news: list[Finding] = []

    def news(self) -> list[Finding]:
        """Return the findings that :meth:`facts` and :meth:`wrong` have added since the last call."""
        found, self._news = self._news, []
        return found

    def facts(self, partition: Partition, fail: Callable[[UnreadableError], None] = raise_it) -> LogDir:
        """Return the facts about a partition. Each call passes all unreadable files of the log dir to ``fail``."""
        log_dir = self.identity(partition)
        if log_dir not in self._checked:
            self._checked.add(log_dir)
            self._news += check(partition, fail, loaded=self.is_loaded(partition.files.shown(partition.state_dir)))
        state, here = self.of(partition), (partition.topic, partition.partition)
        if state.path not in self._compared and self.is_loaded(state.path):
            self._compared.add(state.path)
            self._news += _incredible(partition, state)
        for error in state.failed:
            fail(error)
        return LogDir(
            known=state.is_log_dir,
            clean=state.clean,
            recovery_point=state.recovery_points.get(here),
            high_watermark=state.high_watermarks.get(here),
            log_start=state.log_starts.get(here),
            first_dirty=state.cleaned.get(here, 0) if file_names.CLEANER_OFFSETS in state.sound else None,
            cleaned=here in state.cleaned if file_names.CLEANER_OFFSETS in state.sound else None,
            properties=state.properties,
        )

    @property
    def found(self) -> set[object]:
        """The identities of the folders that :meth:`identity` has returned."""
        return set(self._identities.values())

    def identity(self, partition: Partition) -> object:
        place = partition.files, partition.state_dir
        if place not in self._identities:
            self._identities[place] = folder_identity(*place)
        return self._identities[place]

    def wrong(self, name: str, path: str, damage: DamageError) -> None:
        """Add the finding on a broken file, but only once: the user may name both the file and its log dir."""
        if path not in self._wrong_files:
            self._wrong_files.add(path)
            folder = posixpath.dirname(path)
            is_read = name == file_names.META_PROPERTIES or self.is_loaded(folder)
            of = IF_BROKEN[name] if is_read else IfBroken("", Effect.UNREAD, Effect.UNREAD)
            self._news.append(broken(path, damage, of, dispensable=self.is_dispensable(folder)))
            super().wrong(name, path, damage)

    def is_dispensable(self, log_dir: str) -> bool:
        """Return whether a broker starts while this log dir (shown path) is offline."""
        return (log_dir or ".") in self._dispensable

    def is_loaded(self, log_dir: str) -> bool:
        """Return whether a node loads the logs of this log dir (shown path), and so reads its checkpoints."""
        return (log_dir or ".") not in self._not_loaded


def _incredible(partition: Partition, state: LogDirState) -> Iterator[Finding]:
    """Yield the findings on checkpoints with offsets that no log reaches. A broker lowers them to the log end."""
    for name in (file_names.RECOVERY_POINTS, file_names.HIGH_WATERMARKS):
        found = {f"{topic}-{number}": at for (topic, number), at in state.offsets.get(name, {}).items()}
        wrong = {of: at for of, at in found.items() if at >= INCREDIBLE}
        if wrong:
            path = partition.files.shown(posixpath.join(partition.log_dir, name))
            yield Finding(
                level=Level.DERIVED,
                file=path,
                kind=Code.CHECKPOINT_OFFSET,
                text=f"no log reaches the offsets that the file has for {first_of(list(wrong), 10)}",
                found=max(wrong.values()),
                advice=f"Move the file away before a broker starts. {IF_BROKEN[name].advice}",
                commands=(aside(path),),
            )


def check(
    partition: Partition, fail: Callable[[UnreadableError], None] = raise_it, *, loaded: bool = True
) -> Iterator[Finding]:
    """Yield the findings on a folder with files of :data:`READERS`, except on these. ``fail`` gets unreadable files.

    Unless ``loaded``, the folder is a log dir whose logs its node does not load: foreign folders have no effect.
    """
    files, folder = partition.files, partition.state_dir or ("." if partition.files is LOCAL else "")
    try:
        entries = partition.entries if partition.topic is None and partition.is_listed else files.entries(folder)
    except UnreadableError as error:  # the partition folders may still be readable
        if isinstance(error, StoreError):
            fail(error)
        return
    names = {entry.name for entry in entries}
    if not names & set(READERS):
        return
    for entry in entries:
        path = files.shown(entry.path)
        if entry.name == file_names.BOOTSTRAP_SNAPSHOT:
            from kdump.checks import kraft_snapshot

            try:
                found = kraft_snapshot.check(files, entry.path).findings
                yield from (
                    one._replace(level=Level.DERIVED, advice=NO_BOOTSTRAP) if one.level is Level.LOG else one
                    for one in found
                )
            except UnreadableError as error:
                fail(error)
        elif entry.name.endswith(f".{file_names.TMP}"):
            yield remark(path, Code.LEFTOVER, HALF_WRITTEN)
        elif not loaded:
            if entry.is_folder and file_names.is_foreign(entry.name):
                text = "the node loads no logs from this log dir: this folder matters only to a broker that loads them"
                yield remark(path, Code.FOLDER, text)
        elif entry.is_folder and entry.name == file_names.CLEAN_SHUTDOWN:
            text = (
                "the clean shutdown marker is a folder, or a link to one. A broker starts as after a clean stop, "
                "and then removes the link or the empty folder"
            )
            yield remark(path, Code.FOLDER, text)
        elif entry.is_folder and file_names.is_foreign(entry.name):
            yield Finding(
                level=Level.DERIVED,
                file=path,
                kind=Code.FOLDER,
                text="a broker does not start if a log dir has a folder of this name",
                expected="TOPIC-PARTITION",
                found=entry.name,
                fatal=True,
                advice="Move the folder out of the log dir, or set log.dirs to a folder below the mount point.",
            )


HALF_WRITTEN: Final = "a broker stopped while it wrote this file, and uses the file of the same name without .tmp"


def broken(path: str, damage: DamageError, of: IfBroken, *, dispensable: bool = False, served: bool = True) -> Finding:
    """Return the finding on a broken file. It is never fatal if the partition is not ``served``."""
    effect = of.effect_of(damage, dispensable=dispensable)
    return Finding(
        level=Level.DERIVED,
        file=path,
        kind=damage.kind,
        text=f"the file cannot be read: {damage.reason}",
        position=damage.position,
        expected=text_of(damage.expected),
        found=text_of(damage.found),
        advice=f"{effect.sentence} {of.advice}".strip(),
        fatal=served and effect.is_fatal,
    )
