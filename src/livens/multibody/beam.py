"""Beams of a model: nodes, which are bodies, elements between them, and section-force outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import number
from livens.expressions.parameters import Namespace
from livens.models.element import Element
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody import beams
from livens.multibody.beams import End
from livens.multibody.parts import Part
from livens.multibody.sections import Section

#: Tolerance of arc lengths of nodes, relative to the length of the beam.
_NEAR = 1e-6


@dataclass(eq=False)
class Beam:
    """Beam: nodes from the first end to the last, with their arc lengths, and elements between them.

    A clamped end on the ground is the ground itself. Joints, springs and loads take nodes like any body."""

    name: str
    section: Section
    nodes: list[Part]
    stations: np.ndarray
    closed: bool = False
    elements: list[Element] = field(default_factory=list)
    #: Ends of each element: node, or offset point with frame.
    ends: list[tuple[End, End]] = field(default_factory=list)
    curved: bool = False

    @property
    def a(self) -> Part:
        """First node."""
        return self.nodes[0]

    @property
    def b(self) -> Part:
        """Last node."""
        return self.nodes[-1]

    @property
    def length(self) -> float:
        return float(self.stations[-1])

    def at(self, s: float) -> Part:
        """Return the node at an arc length from the first end; `stations` of the beam guarantee one."""
        where = number(f"{self.name}: the arc length", s)
        near = int(np.argmin(np.abs(self.stations - where)))
        if abs(self.stations[near] - where) > _NEAR * self.length:
            if not 0 <= where <= self.length:
                raise InputError(f"{self.name}: {where:g} is not on the beam, which is {self.length:.6g} long")
            raise InputError(
                f"{self.name}: there is no node at {where:g}, the nearest is at {self.stations[near]:.6g}; "
                f"request one with stations=[{where:g}]"
            )
        return self.nodes[near]

    def __repr__(self) -> str:
        return f"<beam {self.name}: {len(self.elements)} elements, length {self.length:.6g}>"


def beam_quantities(system: System, beam: Beam, numbers: dict[int, int]) -> dict[str, Quantity]:
    """Return the outputs of a beam: node positions, and section forces and moments in section axes."""
    place = {name: i for i, name in enumerate(system.coordinates)}
    d = beam.nodes[0].dimension
    own = [numbers[id(element)] for element in beam.elements]

    def position(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        found = []
        for node in beam.nodes:
            i = [place[str(c)] for c in node.coordinates]
            found.append(q[i[:d]] if i else ca.SX(ca.DM(node.position)))
        return ca.vertcat(*found)

    def carried(q: Any, k: Any, first: int, count: int) -> Any:
        found = []
        for element, (a, b), number_ in zip(beam.elements, beam.ends, own, strict=True):
            at = m.symbols(q[list(system.indices[number_])])
            mine = k[list(system.parameter_indices[number_])][-element.parameters.size :]
            named = Namespace(element.parameters.named(m.symbols(mine)))
            e = beams.strains(beams.invariants(a, b, at, named), named, beam.curved)
            force = (
                named.stiffness @ m.array(e)
                if beam.section.full
                else [c * x for c, x in zip(named.stiffness, e, strict=True)]
            )
            found += [x / named.length for x in list(force)[first : first + count]]
        return m.expression(m.array(found))

    n, turning = len(beam.elements), 3 if d == 3 else 1
    return {
        "position": Quantity(f"nodes of {beam.name}", "m", position, shape=(len(beam.nodes), d)),
        "force": Quantity(
            f"forces in {beam.name}, axial and shear, element by element",
            "N",
            lambda q, v, lam, t, k: carried(q, k, 0, d),
            shape=(n, d),
        ),
        "moment": Quantity(
            f"moments in {beam.name}, {'torsion and ' if d == 3 else ''}bending, element by element",
            "N m",
            lambda q, v, lam, t, k: carried(q, k, d, turning),
            shape=(n, turning) if d == 3 else (n,),
        ),
    }
