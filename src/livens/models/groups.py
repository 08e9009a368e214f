"""Elements of a system grouped by type, with dof maps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.models.element import ElementModel

if TYPE_CHECKING:
    from livens.models.system import System


@dataclass(frozen=True, eq=False)
class TypeGroup:
    """All elements of one type with their index tables, one row per element."""

    model: ElementModel
    elements: np.ndarray
    coordinates: np.ndarray  # dof map
    constraints: np.ndarray  # indices of the element's constraints
    parameters: np.ndarray  # indices into the parameter vector

    @property
    def count(self) -> int:
        return len(self.elements)


def grouped(system: System) -> tuple[TypeGroup, ...]:
    """Group the elements by type, in the order of first occurrence."""
    members: dict[ElementModel, list[int]] = {}
    for i, model in enumerate(system.models):
        members.setdefault(model, []).append(i)
    own = np.cumsum([system.shared.size, *(element.parameters.size for element in system.elements)])
    rows = np.array([s.start for s in system.multiplier_slices], dtype=np.int64)
    shared = np.arange(system.shared.size, dtype=np.int64)
    found = []
    for model, numbers in members.items():
        elements = np.array(numbers, dtype=np.int64)
        size = int(model.k.numel()) - shared.size
        parameters = np.empty((len(numbers), shared.size + size), dtype=np.int64)
        parameters[:, : shared.size] = shared
        parameters[:, shared.size :] = own[elements][:, None] + np.arange(size)
        found.append(
            TypeGroup(
                model,
                elements,
                _table([system.indices[i] for i in numbers]),
                rows[elements][:, None] + np.arange(model.m),
                parameters,
            )
        )
    return tuple(found)


def _table(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Return rows of equal length as an array; faster than `np.array` of tuples."""
    width = len(rows[0])
    flat: Any = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64, count=len(rows) * width)
    return np.asarray(flat.reshape(len(rows), width))
