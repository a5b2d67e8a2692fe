"""Our NamedTuple is typing's: the same class, made without compiling annotations."""

from __future__ import annotations

import pickle
from typing import Generic, TypeVar, get_type_hints
from typing import NamedTuple as TypingNamedTuple

import pytest

from kdump.primitives.named_tuple import NamedTuple

T = TypeVar("T")


class Ours(NamedTuple):
    """A doc."""

    first: int
    second: str | None = None
    third: tuple[int, ...] = ()

    CONSTANT = 7

    @property
    def twice(self) -> int:
        """Twice the first."""
        return self.first * 2

    @classmethod
    def of(cls, first: int) -> Ours:
        return cls(first)


class Theirs(TypingNamedTuple):
    """A doc."""

    first: int
    second: str | None = None
    third: tuple[int, ...] = ()


class Boxed(NamedTuple, Generic[T]):
    content: T


def test_it_is_made_as_typings_is():
    assert Ours._fields == Theirs._fields
    assert Ours._field_defaults == Theirs._field_defaults
    assert Ours.__match_args__ == Theirs.__match_args__
    assert Ours.__doc__ == Theirs.__doc__
    assert (Ours.__module__, Ours.__qualname__) == (__name__, "Ours")
    assert get_type_hints(Ours) == get_type_hints(Theirs)
    assert repr(Ours(1, third=(2,))) == repr(Theirs(1, third=(2,))).replace("Theirs", "Ours")


def test_it_is_a_tuple_with_methods():
    value = Ours(1, "b")
    assert (value, value.second, value.twice, value.CONSTANT) == ((1, "b", ()), "b", 2, 7)
    assert value._replace(first=3) == Ours.of(3)._replace(second="b")
    assert Ours._make([1, "b", ()]) == value
    assert value._asdict() == {"first": 1, "second": "b", "third": ()}
    assert isinstance(value, Ours)
    assert type(tuple.__new__(Ours, (1, "b", ()))) is Ours


def test_it_has_no_other_attributes():
    with pytest.raises(AttributeError):
        Ours(1).fourth = 4
    with pytest.raises(AttributeError):
        Ours(1).first = 4
    assert not hasattr(Ours(1), "__dict__")


def test_it_can_be_sent_to_another_process():
    sent = pickle.loads(pickle.dumps(Ours(1, "b")))
    assert type(sent) is Ours
    assert sent == Ours(1, "b")


def test_it_can_be_generic():
    assert Boxed[int](1).content == Boxed(1)[0] == 1
