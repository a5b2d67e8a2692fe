"""Parses the text of a .proto file (proto2, proto3 and editions; protobuf's language specification).

protoc is not used, because a C++ program should not read text from a log. No Python package makes descriptors without
protoc: proto-schema-parser returns only a syntax tree, and takes 14 times as long as protoc. Services and options are
skipped, except the features in :class:`~kdump.schemas.proto_model.ProtoFeatures`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.schemas import SchemaError
from kdump.schemas.proto_model import (
    EDITION,
    MAX_NUMBER,
    SCALARS,
    SYNTAXES,
    EnumType,
    FieldType,
    MessageType,
    ProtoFeatures,
    ProtoFile,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?f?)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<sign>[{}()\[\]<>=;,.:+\-/])""",
    re.VERBOSE | re.ASCII,
)
_BRACKETS: Final = {"{": "}", "[": "]", "(": ")", "<": ">"}
_MAX_NESTING: Final = 64
_MAX_ENUM: Final = 2**31


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


def parse(text: str) -> ProtoFile:
    """Parse a .proto file. Raises SchemaError, with the line number if a token is not expected."""
    return _ProtoParser(text).file()


def _tokens(text: str) -> list[_Token]:
    found = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _error(text, position, f"{text[position]!r} is not expected")
        if match.lastgroup is not None:
            found.append(_Token(match.lastgroup, match.group(), position))
        position = match.end()
    return found


def _error(text: str, position: int, problem: str) -> SchemaError:
    return SchemaError(f"line {text.count(chr(10), 0, position) + 1} of the schema: {problem}")


@dataclass
class _ProtoParser:
    text: str
    _tokens: list[_Token] = field(init=False)
    _at: int = 0
    _syntax: str = "proto2"
    _features: ProtoFeatures = SYNTAXES["proto2"]
    _level: int = 0

    def __post_init__(self) -> None:
        self.text = self.text.removeprefix("\ufeff")  # protoc ignores a byte order mark too
        self._tokens = _tokens(self.text)

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].text if at < len(self._tokens) else ""

    def _next(self, kind: str = "") -> str:
        if self._at >= len(self._tokens):
            raise _error(self.text, len(self.text), "the text ends early")
        token = self._tokens[self._at]
        if kind and token.kind != kind:
            raise self._unexpected(f"a {kind}")
        self._at += 1
        return token.text

    def _unexpected(self, expected: str) -> SchemaError:
        at = min(self._at, len(self._tokens) - 1)
        position = self._tokens[at].position if self._tokens else 0
        return _error(self.text, position, f"expected {expected}, found {self._peek()[:40]!r}")

    def _take(self, text: str) -> bool:
        if self._peek() != text:
            return False
        self._at += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(repr(text))

    def _name(self) -> str:
        return self._next("word")

    def _path(self) -> str:
        """Return a name that may have dots, such as ``.a.B``."""
        name = ("." if self._take(".") else "") + self._name()
        while self._take("."):
            name += f".{self._name()}"
        return name

    def _integer(self) -> int:
        negative = self._take("-")
        text = self._next("number").lower()
        try:
            value = int(text, 0 if text.startswith("0x") else 8 if text.startswith("0") and len(text) > 1 else 10)
        except ValueError:
            self._at -= 1
            raise self._unexpected("a whole number") from None
        return -value if negative else value

    def _string(self) -> str:
        text = self._next("text")[1:-1]
        while self._at < len(self._tokens) and self._tokens[self._at].kind == "text":
            text += self._next("text")[1:-1]
        return text

    def _skip_to(self, end: str) -> list[str]:
        """Skip tokens up to and including ``end``, over nested brackets; return the tokens before ``end``."""
        closing: list[str] = []
        seen: list[str] = []
        while True:
            token = self._next()
            if not closing and token == end:
                return seen
            seen.append(token)
            if token in _BRACKETS:
                closing.append(_BRACKETS[token])
            elif closing and token == closing[-1]:
                closing.pop()
            elif token in _BRACKETS.values():
                self._at -= 1
                raise self._unexpected(repr(end))

    def _features_to(self, end: str) -> ProtoFeatures:
        """Skip options up to ``end``; return the current features, changed by the options."""
        return self._features.changed(_settings(self._skip_to(end)))

    def file(self) -> ProtoFile:
        file = ProtoFile()
        while self._at < len(self._tokens):
            word = self._next()
            if word in ("syntax", "edition"):
                self._begin(word)
            elif word == "package":
                file.package = self._path()
                self._expect(";")
            elif word == "import":
                is_needed = not self._take("option")  # such an import only declares options
                if self._peek() in ("public", "weak"):
                    self._next()
                name = self._string()
                file.imports += [name] * is_needed
                self._expect(";")
            elif word == "option":
                self._features = self._features_to(";")
            elif word in ("export", "local") and self._peek() in ("message", "enum"):
                continue
            elif word != ";":
                self._definition(word, file)
        return file

    def _definition(self, word: str, file: ProtoFile) -> None:
        if word == "message":
            file.messages.append(self._message(file.package, file))
        elif word == "enum":
            file.enums.append(self._enum(file.package))
        elif word == "extend":
            self._extend(file.package, file, None)
        elif word == "service":
            self._name()
            self._expect("{")
            self._skip_to("}")
        else:
            self._at -= 1
            raise self._unexpected("a declaration")

    def _begin(self, word: str) -> None:
        self._expect("=")
        name = self._string()
        self._expect(";")
        if word == "edition":
            self._syntax, self._features = word, EDITION
        elif name in SYNTAXES:
            self._syntax, self._features = name, SYNTAXES[name]
        else:
            raise SchemaError(f"the syntax {name[:40]!r} is unknown")

    def _message(self, scope: str, file: ProtoFile, name: str = "") -> MessageType:
        name = name or self._name()
        message = MessageType(name, f"{scope}.{name}" if scope else name)
        self._level += 1
        if self._level > _MAX_NESTING:
            raise SchemaError(f"messages are nested more than {_MAX_NESTING} levels deep")
        features = self._features
        self._expect("{")
        while not self._take("}"):
            self._member(message, file, None)
        self._features = features
        self._level -= 1
        _check(message)
        return message

    def _member(self, message: MessageType, file: ProtoFile, oneof: str | None) -> None:
        word, after, third = self._peek(), self._peek(1), self._peek(2)
        if word == ";":
            self._next()
        elif word == "option" and (after == "(" or third in ("=", ".")):
            self._next()
            self._features = self._features_to(";")
        elif word in ("export", "local") and after in ("message", "enum") and third != "=":
            self._next()
        elif oneof is None and word in ("message", "enum", "oneof", "extend") and "{" in (third, after):
            self._next()
            self._nested(word, message, file)
        elif oneof is None and word == "extend":
            self._next()
            self._extend(message.full_name, file, message)
        elif oneof is None and word in ("reserved", "extensions") and after not in ("=",) and third != "=":
            self._next()
            self._skip_to(";")
        elif word == "map" and after == "<":
            self._map(message)
        else:
            message.fields.append(self._field(message.full_name, file, message, oneof))

    def _nested(self, word: str, message: MessageType, file: ProtoFile) -> None:
        if word == "message":
            message.nested.append(self._message(message.full_name, file))
        elif word == "enum":
            message.enums.append(self._enum(message.full_name))
        elif word == "extend":
            self._extend(message.full_name, file, message)
        else:
            name = self._name()
            self._expect("{")
            while not self._take("}"):
                self._member(message, file, name)

    def _extend(self, scope: str, file: ProtoFile, message: MessageType | None) -> None:
        extended = self._path()
        self._expect("{")
        while not self._take("}"):
            if not self._take(";"):
                file.extend(extended, self._field(scope, file, message, None))

    def _label(self, oneof: str | None) -> str:
        word = self._peek()
        if oneof is None and word in ("optional", "required", "repeated") and self._peek(1) not in ("=", "["):
            self._next()
            if word == "required" and self._syntax == "proto3":
                raise SchemaError("proto3 has no required fields")
            return word
        return ""

    def _field(self, scope: str, file: ProtoFile, message: MessageType | None, oneof: str | None) -> FieldType:
        label = self._label(oneof)
        group = self._peek() == "group" and self._peek(2) == "="
        kind = self._path()
        name = self._name()
        self._expect("=")
        number = self._integer()
        if not 0 < number <= MAX_NUMBER or 19000 <= number <= 19999:
            raise SchemaError(f"{number} is not a field number ({name!r} of {scope!r})")
        features = self._features_to("]") if self._take("[") else self._features
        if group:
            made = self._message(scope, file, name)
            (file.messages if message is None else message.nested).append(made)
            kind, name = f".{made.full_name}", name.lower()
        else:
            self._expect(";")
        return FieldType(
            name=name,
            number=number,
            type=kind,
            repeated=label == "repeated",
            group=group or (features.delimited and kind not in SCALARS),
            presence=label != "repeated" and (features.presence or label == "optional" or oneof is not None),
            oneof=oneof,
            scope=scope,
        )

    def _map(self, message: MessageType) -> None:
        self._next()
        self._expect("<")
        key = self._name()
        if key not in SCALARS or key in ("double", "float", "bytes"):
            raise SchemaError(f"{key!r} is not a key type of maps")
        self._expect(",")
        value = self._path()
        self._expect(">")
        name = self._name()
        self._expect("=")
        number = self._integer()
        if self._take("["):
            self._skip_to("]")
        self._expect(";")
        made = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"
        entry = MessageType(made, f"{message.full_name}.{made}", is_map_entry=True)
        entry.fields = [
            FieldType(name="key", number=1, type=key),
            FieldType(name="value", number=2, type=value, scope=message.full_name),
        ]
        message.nested.append(entry)
        message.fields.append(
            FieldType(name=name, number=number, type=f".{entry.full_name}", repeated=True, scope=message.full_name)
        )

    def _enum(self, scope: str) -> EnumType:
        name = self._name()
        self._expect("{")
        features = self._features
        values: list[tuple[str, int]] = []
        while not self._take("}"):
            if self._take(";"):
                continue
            if self._peek() in ("option", "reserved") and self._peek(1) != "=":
                self._next()
                features = features.changed(_settings(self._skip_to(";")))
                continue
            value = self._name()
            self._expect("=")
            number = self._integer()
            if not -_MAX_ENUM <= number < _MAX_ENUM:
                raise SchemaError(f"{number} is not a value of an enum")
            values.append((value, number))
            if self._take("["):
                self._skip_to("]")
            self._expect(";")
        full = f"{scope}.{name}" if scope else name
        if not values:
            raise SchemaError(f"enum {full!r} has no values")
        if self._syntax == "proto3" and values[0][1] != 0:
            raise SchemaError(f"the first value of enum {full!r} is not 0")
        if len({value for value, _ in values}) < len(values):
            raise SchemaError(f"enum {full!r} has two values with the same name")
        return EnumType(name, full, tuple(values), features.closed_enums)


def _settings(tokens: list[str]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each feature in options; from ``features = {}`` also other pairs of tokens."""
    inside: list[bool] = []  # for each open bracket: whether it begins the list of features
    for at, (token, value) in enumerate(zip(tokens, tokens[2:], strict=False)):
        before = tokens[max(0, at - 3) : at]
        if token in _BRACKETS:
            inside.append(not inside and before[-2:] == ["features", "="])
        elif token in _BRACKETS.values():
            inside.pop()
        elif inside == [True] or (not inside and before in (["features", "."], [",", "features", "."])):
            yield token, value


def _check(message: MessageType) -> None:
    members: tuple[list[object], ...] = (
        [each.number for each in message.fields],
        [each.name for each in message.fields],
        [*(each.name for each in message.nested), *(each.name for each in message.enums)],
    )
    for found in members:
        if len(set(found)) < len(found):
            raise SchemaError(f"message {message.full_name!r} has two members with the same name or number")
