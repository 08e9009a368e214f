"""Types of lowered functions: scalars, flat arrays and structs."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, NamedTuple, cast, get_origin, get_type_hints

import numpy as np

#: Flat arrays of float64, int64, and int32 (non-negative indices).
Doubles = Annotated[np.ndarray, "double"]
Integers = Annotated[np.ndarray, "i64"]
Indices = Annotated[np.ndarray, "i32"]
_ELEMENTS = {"double": np.dtype(np.float64), "i64": np.dtype(np.int64), "i32": np.dtype(np.int32)}


class Kind(NamedTuple):
    """Type of a value: its LLVM type; for arrays the type of the entries, for structs the class."""

    llvm: str
    element: str = ""
    record: Any = None


INT, FLOAT, BOOL, NOTHING = Kind("i64"), Kind("double"), Kind("i1"), Kind("void")
_PLAIN = {int: INT, float: FLOAT, bool: BOOL, type(None): NOTHING}


def kind_of(annotation: Any) -> Kind:
    """Return the native type of an annotation."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return Kind("ptr", "", annotation)
    (element,) = annotation.__metadata__
    return Kind("ptr", element)


@functools.cache
def kinds_of(annotated: Any) -> Mapping[str, Kind]:
    """Return the types of the arguments of a function, or of the fields of a struct."""
    hints = get_type_hints(annotated, include_extras=True)
    return {name: kind_of(hint) for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def slot(value: Any, kind: Kind) -> Any:
    """Return a value as passed to a native function: arrays and structs by address."""
    if kind.element:
        assert value.dtype == _ELEMENTS[kind.element] and value.flags.c_contiguous, (value.dtype, kind)
        return value.__array_interface__["data"][0]
    if kind.record is not None:
        return value.address
    return float(value) if kind is FLOAT else int(value)


def _bits(value: Any) -> int:
    """Return a number as a 64-bit pattern."""
    return int(np.float64(value).view(np.int64)) if isinstance(value, float) else int(value)


@dataclass(frozen=True, eq=False)
class Record:
    """C struct of arrays and numbers, constant while a native function runs."""

    #: Field values: addresses, integers, and bit patterns of floats.
    slots: ClassVar[np.ndarray]
    #: Address of the slots.
    address: ClassVar[int]

    def __post_init__(self) -> None:
        kinds = kinds_of(cast(Hashable, type(self)))
        values = [_bits(slot(getattr(self, field.name), kinds[field.name])) for field in fields(self)]
        slots = np.array(values, dtype=np.int64)
        object.__setattr__(self, "slots", slots)
        object.__setattr__(self, "address", slots.__array_interface__["data"][0])

    @classmethod
    def place(cls, name: str) -> int:
        """Return the index of a field among the slots."""
        return [field.name for field in fields(cls)].index(name)
