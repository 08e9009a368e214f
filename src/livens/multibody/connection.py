"""Base class of constraints between two bodies with reaction outputs: joints, rolling, points on curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens.models.element import Element
from livens.multibody.joint_table import Kind
from livens.multibody.parts import Part


class Connection:
    """Constraint between two bodies; reaction forces and torques act on the second body.

    Torques are about the body-fixed point ``parameters["Y"]`` of the second body.
    """

    element: Element

    def __init__(self, name: str, what: str, kind: Kind, first: Part, second: Part) -> None:
        self.name, self.what, self.kind, self.first, self.second = name, what, kind, first, second
        self.a, self.b = first.placement, second.placement
        self.coordinates = [*first.coordinates, *second.coordinates]
        self.parameters: dict[str, Any] = dict(X=np.zeros(first.dimension), Y=np.zeros(first.dimension))

    def __repr__(self) -> str:
        return f"<{self.what} {self.name}: {self.first.name}-{self.second.name}>"


def clean(values: np.ndarray) -> np.ndarray:
    """Snap entries within 1e-15 of 0 and +-1 to these values."""
    size = max(1.0, float(np.abs(values).max(initial=0.0)))
    found = np.where(np.abs(values) < 1e-15 * size, 0.0, values)
    return np.where(np.abs(np.abs(found) - 1.0) < 1e-15, np.sign(found), found)
