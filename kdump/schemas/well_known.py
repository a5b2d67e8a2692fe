"""Protobuf's well-known types as JSON, and the built-in .proto files. A time out of range stays an object of fields."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kdump.schemas.times import day, fraction

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE: Final = "google.protobuf."


@cache
def texts() -> dict[str, str]:
    """Return the texts of the files that schemas import without a reference, by name."""
    text = files("kdump.schemas").joinpath("well_known.txt").read_text(encoding="utf-8")
    return dict(part.split("\n", 1) for part in text.removeprefix("file ").split("\nfile "))


def _timestamp(plain: dict[str, Any]) -> Any:
    seconds, nanos = int(plain.get("seconds", 0)), plain.get("nanos", 0)
    if not -62135596800 <= seconds <= 253402300799 or not 0 <= nanos < 1_000_000_000:
        return plain
    days, rest = divmod(seconds, 86400)
    return f"{day(days)}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}{_fraction(nanos)}Z"


def _duration(plain: dict[str, Any]) -> Any:
    seconds, nanos = int(plain.get("seconds", 0)), plain.get("nanos", 0)
    if abs(seconds) > 315576000000 or abs(nanos) > 999_999_999 or (seconds < 0 < nanos or nanos < 0 < seconds):
        return plain
    return f"{'-' if seconds < 0 or nanos < 0 else ''}{abs(seconds)}{_fraction(abs(nanos))}s"


def _fraction(nanos: int) -> str:
    return f".{fraction(nanos)}" if nanos else ""


def _camel_case(path: str) -> str:
    """Return a path of a field mask in camelCase; unchanged if it cannot be converted back."""
    made, upper = "", False
    for character in path:
        if character == "_" and not upper:
            upper = True
        elif (upper and not character.islower()) or character.isupper():
            return path
        else:
            made += character.upper() if upper else character
            upper = False
    return path if upper else made


def _only(name: str, empty: Any) -> Converter:
    return lambda plain: plain.get(name, empty)


Converter: TypeAlias = "Callable[[dict[str, Any]], Any]"
WRAPPERS: Final = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
CONVERTERS: Final[dict[str, Converter]] = {
    PACKAGE + name: convert
    for name, convert in {
        "Duration": _duration,
        "FieldMask": lambda plain: ",".join(map(_camel_case, plain.get("paths", ()))),
        "ListValue": _only("values", []),
        "Struct": _only("fields", {}),
        "Timestamp": _timestamp,
        "Value": lambda plain: next(iter(plain.values()), None),
        **{f"{name}Value": _only("value", None) for name in WRAPPERS},
    }.items()
}
