"""Elements of a system grouped by type, with dof maps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.models.element import ElementType

if TYPE_CHECKING:
    from livens.models.system import System


@dataclass(frozen=True, eq=False)
class ElementGroup:
    """All elements of one type with their index tables, one row per element."""

    element_type: ElementType
    elements: np.ndarray
    coordinates: np.ndarray  # dof map
    constraints: np.ndarray  # indices of the element's constraints
    parameters: np.ndarray  # indices into the parameter vector

    @property
    def count(self) -> int:
        return len(self.elements)


def group_elements(system: System) -> tuple[ElementGroup, ...]:
    """Group the elements by type, in the order of first occurrence."""
    members: dict[ElementType, list[int]] = {}
    for i, model in enumerate(system.element_types):
        members.setdefault(model, []).append(i)
    parameter_offsets = np.cumsum(
        [system.model_parameters.size, *(element.parameters.size for element in system.elements)]
    )
    constraint_offsets = np.array([s.start for s in system.element_constraints], dtype=np.int64)
    shared = np.arange(system.model_parameters.size, dtype=np.int64)
    groups = []
    for model, indices in members.items():
        elements = np.array(indices, dtype=np.int64)
        size = int(model.k.numel()) - shared.size
        parameters = np.empty((len(indices), shared.size + size), dtype=np.int64)
        parameters[:, : shared.size] = shared
        parameters[:, shared.size :] = parameter_offsets[elements][:, None] + np.arange(size)
        groups.append(
            ElementGroup(
                model,
                elements,
                _as_table([system.element_dofs[i] for i in indices]),
                constraint_offsets[elements][:, None] + np.arange(model.m),
                parameters,
            )
        )
    return tuple(groups)


def _as_table(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Return rows of equal length as an array; faster than `np.array` of tuples."""
    width = len(rows[0])
    flat: Any = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64, count=len(rows) * width)
    return np.asarray(flat.reshape(len(rows), width))
