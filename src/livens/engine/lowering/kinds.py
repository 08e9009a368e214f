"""The kinds of values that lowered functions know."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, NamedTuple, cast, get_origin, get_type_hints

import numpy as np

#: Flat arrays of doubles, of 64-bit numbers, and of 32-bit indices, which are not negative.
Doubles = Annotated[np.ndarray, "double"]
Integers = Annotated[np.ndarray, "i64"]
Indices = Annotated[np.ndarray, "i32"]
_ELEMENTS = {"double": np.dtype(np.float64), "i64": np.dtype(np.int64), "i32": np.dtype(np.int32)}


class Kind(NamedTuple):
    """What a value is: its LLVM type, for arrays that of their entries, and for records their class."""

    llvm: str
    element: str = ""
    record: Any = None


INT, FLOAT, BOOL, NOTHING = Kind("i64"), Kind("double"), Kind("i1"), Kind("void")
_PLAIN = {int: INT, float: FLOAT, bool: BOOL, type(None): NOTHING}


def kind_of(annotation: Any) -> Kind:
    """The kind that an annotation says."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return Kind("ptr", "", annotation)
    (element,) = annotation.__metadata__
    return Kind("ptr", element)


@functools.cache
def kinds_of(annotated: Any) -> Mapping[str, Kind]:
    """The kinds of the arguments of a function, or of the fields of a record."""
    hints = get_type_hints(annotated, include_extras=True)
    return {name: kind_of(hint) for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def slot(value: Any, kind: Kind) -> Any:
    """A value as a native function is given it: arrays and records by their addresses."""
    if kind.element:
        assert value.dtype == _ELEMENTS[kind.element] and value.flags.c_contiguous, (value.dtype, kind)
        return value.__array_interface__["data"][0]
    if kind.record is not None:
        return value.address
    return float(value) if kind is FLOAT else int(value)


def _bits(value: Any) -> int:
    """A number as 64 bits."""
    return int(np.float64(value).view(np.int64)) if isinstance(value, float) else int(value)


@dataclass(frozen=True, eq=False)
class Record:
    """Arrays and numbers that belong together, and do not change as long as a function runs."""

    #: Addresses, whole numbers, and the bits of other numbers, field by field.
    slots: ClassVar[np.ndarray]
    #: Where they stand.
    address: ClassVar[int]

    def __post_init__(self) -> None:
        kinds = kinds_of(cast(Hashable, type(self)))
        values = [_bits(slot(getattr(self, field.name), kinds[field.name])) for field in fields(self)]
        slots = np.array(values, dtype=np.int64)
        object.__setattr__(self, "slots", slots)
        object.__setattr__(self, "address", slots.__array_interface__["data"][0])

    @classmethod
    def place(cls, name: str) -> int:
        """The place of a field among the slots."""
        return [field.name for field in fields(cls)].index(name)
