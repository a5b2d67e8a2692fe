"""``quorum-state`` of a KRaft node: the quorum leader that the node last followed, and its vote.

Source: KIP-595 (2.7), KIP-853 (3.9, version 1) and Kafka's classes FileQuorumStateStore and QuorumStateData. The file
is in the folder of the metadata log. It is one line of JSON, with its version in ``data_version``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from kdump.errors import DamageError, quoted
from kdump.formats.partition_metadata import id_of

if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes

VERSION: Final = "data_version"
HIGHEST_EPOCH: Final = (1 << 31) - 1
"""The highest Int32. A node with this epoch stops when it adds 1 to become a candidate (4.4.0)."""
NEEDED: Final = {
    0: {"clusterId": str, "leaderId": int, "leaderEpoch": int, "votedId": int, "appliedOffset": int},
    1: {"leaderId": int, "leaderEpoch": int, "votedId": int, "votedDirectoryId": str},
}
"""Version -> the required fields and their types. Version 0 also needs ``currentVoters``, a list."""


class QuorumState(NamedTuple):
    """The file's version, the leader and its epoch, and the node for which this node voted; -1 if it has none.

    ``voters`` are the nodes of a static quorum (``controller.quorum.voters``); empty in version 1.
    """

    version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voters: tuple[int, ...] = ()


def read(data: Bytes) -> QuorumState:
    """Return the content of the JSON object in the first line. Raises DamageError if a node refuses the file.

    HIGHEST_EPOCH is damage, too. Java's reader takes only UTF-8 without a byte order mark, and ignores later text. The
    line ends at the first CR or LF.
    """
    import json

    try:
        line = bytes(data).decode().replace("\r", "\n").partition("\n")[0]
        content, _ = json.JSONDecoder(parse_constant=_refuse).raw_decode(line.lstrip(" \t"))
    except (ValueError, RecursionError) as fault:
        raise DamageError("json", f"quorum-state is not JSON: {fault}") from None
    if not isinstance(content, dict):
        raise DamageError("json", "quorum-state is not a JSON object", found=type(content).__name__)
    version = content.get(VERSION)
    if type(version) is not int or version not in NEEDED:
        raise DamageError("version", f"quorum-state has an unknown {VERSION}", expected="0 or 1", found=quoted(version))
    for name, kind in NEEDED[version].items():
        value, bits = content.get(name), 64 if name == "appliedOffset" else 32
        if type(value) is not kind or (isinstance(value, int) and not _fits(value, bits)):
            expected = f"a whole number of {bits} bits" if kind is int else "a text"
            raise DamageError("json", f"quorum-state has no valid {name}", expected=expected, found=content.get(name))
    if content["leaderEpoch"] == HIGHEST_EPOCH:
        text = "leaderEpoch in quorum-state is the highest possible epoch, so the node cannot become a candidate"
        raise DamageError("json", text, expected=f"below {HIGHEST_EPOCH}", found=HIGHEST_EPOCH)
    if version > 0 and not id_of(content["votedDirectoryId"]):
        text, found = "votedDirectoryId in quorum-state is not a Uuid", content["votedDirectoryId"]
        raise DamageError("json", text, expected="22 characters of base64", found=quoted(found))
    voters = _voters(content) if version == 0 else ()
    return QuorumState(version, content["leaderId"], content["leaderEpoch"], content["votedId"], voters)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")


def _fits(value: int, bits: int) -> bool:
    return -(1 << bits - 1) <= value < 1 << bits - 1


def _voters(content: dict[str, object]) -> tuple[int, ...]:
    """Return the ids in ``currentVoters``. Raises DamageError if a node refuses the field.

    QuorumStateDataJsonConverter reads null, but ``ElectionState.fromQuorumStateData`` throws NullPointerException.
    """
    voters = content.get("currentVoters", "")
    found = []
    for each in voters if isinstance(voters, list) else [None]:
        voter = each.get("voterId") if isinstance(each, dict) else None
        if type(voter) is not int or not _fits(voter, 32):
            expected = "a list of objects with voterId"
            text = "quorum-state has no valid currentVoters"
            raise DamageError("json", text, expected=expected, found=quoted(voters))
        found.append(voter)
    return tuple(found)
