"""What an export that goes on remembers: how far it is, in the folder ``_checkpoint`` of its output.

``_checkpoint/<number>.json`` is the commit of a step: the offsets behind it, the files that move from the step's own
folder into place, the account of its run. The greatest number counts. A file is there whole or not at all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.errors import KdumpError, UsageError
from kdump.spark_export.output import CHECKPOINT

if TYPE_CHECKING:
    from kdump.spark_export.output import Output
    from kdump.spark_source.streaming import Offsets

STAGING: Final = f"{CHECKPOINT}/staging"
KEPT: Final = 2


class State(NamedTuple):
    """How far an output is: the number of its last commit, 0 before the first, and the offsets of its inputs."""

    number: int
    offsets: Offsets


class Checkpoint:
    """The checkpoint folder of ``output``. ``settings`` are what must not differ between runs."""

    def __init__(self, output: Output, settings: dict[str, Any]) -> None:
        self._output, self._settings = output, settings

    def open(self) -> State:
        """Return how far the output is; finish the commit of a run that was killed, throw away what had none.

        Raises UsageError where the folder is not one of these exports, or was written with other settings.
        """
        output = self._output
        numbers = self._numbers()
        if not numbers:
            if output.exists("") and not output.exists(CHECKPOINT):
                raise UsageError(f"{output.path} is there already and holds no {CHECKPOINT}: choose another --out")
            return State(0, {})
        commit = self._read(numbers[-1])
        for name, value in self._settings.items():
            if commit["settings"][name] != value:
                raise UsageError(
                    f"{output.path} was written with {name} {commit['settings'][name]}, not {value}: "
                    "choose another --out, or the same options"
                )
        self._finish(commit)
        return State(numbers[-1], commit["offsets"])

    def staging(self) -> Output:
        """Return an empty folder for a step to write to."""
        self._output.delete(STAGING)
        return self._output.below(STAGING)

    def commit(self, state: State, offsets: Offsets, run: dict[str, Any], *, is_first: bool) -> State:
        """Take what stands in the staging folder into the output. ``is_first`` begins the account of a new run."""
        number = state.number + 1
        if number in self._numbers():
            raise KdumpError(f"{self._output.path}: another run has written here meanwhile; run one at a time")
        runs = len(self._output.runs() or [])
        commit = {
            "settings": self._settings,
            "offsets": offsets,
            "moves": self._output.files(STAGING),
            "run": runs if is_first else runs - 1,
            "account": run,
        }
        self._output.write_text(f"{CHECKPOINT}/{number}.json", json.dumps(commit))
        self._finish(commit)
        for old in self._numbers()[:-KEPT]:
            self._output.delete(f"{CHECKPOINT}/{old}.json")
        return State(number, offsets)

    def _finish(self, commit: dict[str, Any]) -> None:
        """Do what a commit says, as far as it is not done."""
        for name in commit["moves"]:
            self._output.move(f"{STAGING}/{name}", name)
        runs = self._output.runs() or []
        runs[commit["run"] :] = [commit["account"]]
        self._output.write_runs(runs)
        self._output.delete(STAGING)

    def _numbers(self) -> list[int]:
        stems = (name.removesuffix(".json") for name in self._output.files(CHECKPOINT, deep=False))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _read(self, number: int) -> dict[str, Any]:
        name = f"{CHECKPOINT}/{number}.json"
        try:
            commit: dict[str, Any] = json.loads(self._output.read_text(name))
            if not {"settings", "offsets", "moves", "run", "account"} <= commit.keys():
                raise KeyError("a field is missing")
        except (ValueError, KeyError, AttributeError) as reason:
            raise KdumpError(f"{self._output.path}/{name} is not one of kdump's: {reason}") from reason
        return commit
