"""Types of lowered functions: scalars, flat arrays and structs."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, NamedTuple, cast, get_origin, get_type_hints

import numpy as np

#: Flat arrays of float64, int64, and int32 (non-negative indices).
F64Array = Annotated[np.ndarray, "double"]
I64Array = Annotated[np.ndarray, "i64"]
I32Array = Annotated[np.ndarray, "i32"]
#: Vector of four float64 in a register: a vector of space with a fourth, unused component.
Quad = Annotated[np.ndarray, "quad"]
_ELEMENTS = {"double": np.dtype(np.float64), "i64": np.dtype(np.int64), "i32": np.dtype(np.int32)}


class NativeType(NamedTuple):
    """Type of a value: its LLVM type; for arrays the type of the entries, for structs the class."""

    llvm: str
    element: str = ""
    struct: Any = None


INT, FLOAT, BOOL, VOID = NativeType("i64"), NativeType("double"), NativeType("i1"), NativeType("void")
QUAD = NativeType("<4 x double>")


@functools.cache
def lanes_type(width: int) -> NativeType:
    """Return the type of one number per lane."""
    return NativeType(f"<{width} x double>")


@functools.cache
def lanes_vector_type(width: int) -> NativeType:
    """Return the type of a vector of space per lane: three components, each with one number per lane."""
    return NativeType("{ " + ", ".join([f"<{width} x double>"] * 3) + " }")


@functools.cache
def mask_type(width: int) -> NativeType:
    """Return the type of one truth value per lane."""
    return NativeType(f"<{width} x i1>")


_SCALARS = {int: INT, float: FLOAT, bool: BOOL, type(None): VOID}


def type_of(annotation: Any) -> NativeType:
    """Return the native type of an annotation."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return NativeType("ptr", "", annotation)
    (element,) = annotation.__metadata__
    if element == "quad":
        return QUAD
    return NativeType("ptr", element)


@functools.cache
def signature_of(annotated: object) -> Mapping[str, NativeType]:
    """Return the types of the arguments of a function, or of the fields of a struct."""
    hints = get_type_hints(annotated, include_extras=True)
    return {name: type_of(hint) for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def to_slot(value: Any, native_type: NativeType) -> float:
    """Return a value as passed to a native function: arrays and structs by address."""
    if native_type.element:
        assert value.dtype == _ELEMENTS[native_type.element] and value.flags.c_contiguous, (value.dtype, native_type)
        return value.__array_interface__["data"][0]
    if native_type.struct is not None:
        return value.address
    return float(value) if native_type is FLOAT else int(value)


def _float_bits(value: float) -> int:
    """Return a number as a 64-bit pattern."""
    return int(np.float64(value).view(np.int64)) if isinstance(value, float) else int(value)


@dataclass(frozen=True, eq=False)
class Struct:
    """C struct of arrays and numbers, constant while a native function runs."""

    #: Field values: addresses, integers, and bit patterns of floats.
    slots: ClassVar[np.ndarray]
    #: Address of the slots.
    address: ClassVar[int]

    def __post_init__(self) -> None:
        native_types = signature_of(cast(Hashable, type(self)))
        values = [_float_bits(to_slot(getattr(self, field.name), native_types[field.name])) for field in fields(self)]
        slots = np.array(values, dtype=np.int64)
        object.__setattr__(self, "slots", slots)
        object.__setattr__(self, "address", slots.__array_interface__["data"][0])

    @classmethod
    def field_index(cls, name: str) -> int:
        """Return the index of a field among the slots."""
        return [field.name for field in fields(cls)].index(name)
