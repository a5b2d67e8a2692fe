"""The position of an incremental export, in the folder ``_checkpoint`` of its output.

``_checkpoint/<number>.json`` is the commit of a step: the offsets after the step, its account, and the files to move
from the step's own folder (``staging``) to the output. The greatest number counts. Each file is written atomically.

The accounts of steps move to the manifest at the end of a run, and earlier if they are half as large as the manifest.
So the cost of a step does not grow with the number of steps. ``steps`` of the manifest is the last step in it.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.errors import KdumpError, UsageError
from kdump.spark.export import account, commit
from kdump.spark.export.output import CHECKPOINT
from kdump.spark.failures import try_to

if TYPE_CHECKING:
    from kdump.spark.export.output import Output
    from kdump.spark.source.streaming import Offsets

KEPT: Final = 2


class State(NamedTuple):
    """The position of an output: the number of its last commit (0 before the first) and the offsets of its inputs."""

    number: int
    offsets: Offsets


class Checkpoint:
    """The checkpoint folder of ``output``, which the caller has locked. ``settings`` must be equal in all runs."""

    def __init__(self, output: Output, settings: dict[str, Any]) -> None:
        self._output, self._settings = output, settings
        self._runs = 0
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        self._size = self._manifest_size = 0

    def open(self, *, skip_unreadable: bool = False) -> State:
        """Return the position of the output. First complete the commits of a killed run, and delete its other files.

        Raises UsageError if the folder is not an incremental export, has other settings, or lacks bytes that an earlier
        run could not read. With ``skip_unreadable`` unreadable bytes count as damage.
        """
        output = self._output
        numbers = self._numbers()
        if not numbers:
            if output.exists("") and not output.exists(CHECKPOINT):
                raise UsageError(f"{output.path} exists and has no {CHECKPOINT}: choose another --out")
            commit.clear(output)
            return State(0, {})
        last = self._read(numbers[-1])
        for name, value in self._settings.items():
            if last["settings"][name] != value:
                raise UsageError(
                    f"{output.path} was written with {name} {last['settings'][name]}, not {value}: "
                    "choose another --out, or the same options"
                )
        self._finish(last)
        commit.clear(output)
        reported = self._output.steps()
        self._waiting = [(number, self._read(number)) for number in numbers if number > reported]
        self.write_manifest()
        runs = self._output.runs() or []
        hint = "choose another --out, which gets all of it"
        account.refuse_unread(runs, output.path, skip_unreadable=skip_unreadable, hint=hint)
        self._runs = len(runs)
        return State(numbers[-1], last["offsets"])

    def commit(
        self, state: State, offsets: Offsets, step: dict[str, Any], staged: tuple[str, Output], *, is_first: bool
    ) -> State:
        """Move the files of a step from ``staged`` (name, folder) to the output. ``is_first``: first step of a run."""
        staging = staged[1]
        number = state.number + 1
        if self._output.exists(f"{CHECKPOINT}/{number}.json"):
            raise KdumpError(f"{self._output.path}: another run has written here meanwhile; run one at a time")
        self._runs += is_first
        moves = staging.files()
        made = {
            "settings": self._settings,
            "offsets": offsets,
            "staging": staged[0],
            "moves": moves,
            "run": self._runs - 1,
            "account": step,
        }
        staging.flush(moves)
        text = json.dumps(made)
        name = f"{CHECKPOINT}/{number}.json"
        try:
            self._output.write_text(name, text)
        except BaseException:
            try_to(lambda: None if self._output.exists(name) else staging.delete())
            raise
        self._finish(made)
        self._waiting.append((number, made))
        self._size += len(text)
        if 2 * self._size > self._manifest_size:
            self.write_manifest()
        return State(number, offsets)

    def _finish(self, made: dict[str, Any]) -> None:
        staging = self._output.hidden(made["staging"])
        commit.move(self._output, staging, made["moves"])
        staging.delete()

    def write_manifest(self) -> None:
        """Add the waiting accounts of steps to the manifest."""
        if not self._waiting:
            return
        runs = self._output.runs() or []
        for at, group in groupby(self._waiting, key=lambda numbered: numbered[1]["run"]):
            steps = [made["account"] for _, made in group]
            if at < len(runs):
                runs[at] = account.plus(runs[at], steps)
            else:
                runs.append(account.plus(steps[0], steps[1:]))
        self._manifest_size = self._output.write_runs(runs, self._waiting[-1][0])
        self._waiting, self._size = [], 0
        for old in self._numbers()[:-KEPT]:
            self._output.delete(f"{CHECKPOINT}/{old}.json")

    def _numbers(self) -> list[int]:
        stems = (name.removesuffix(".json") for name in self._output.files(CHECKPOINT, deep=False))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _read(self, number: int) -> dict[str, Any]:
        name = f"{CHECKPOINT}/{number}.json"
        try:
            made: dict[str, Any] = json.loads(self._output.read_text(name))
            if not {"settings", "offsets", "staging", "moves", "run", "account"} <= made.keys():
                raise KeyError("a field is missing")
        except (ValueError, KeyError, AttributeError) as reason:
            raise KdumpError(f"{self._output.path}/{name} was not written by kdump: {reason}") from reason
        return made
