"""Beams of a model: nodes, which are bodies, elements between them, and section-force outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import ParameterNamespace
from livens.models.element import Element
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody import beam_element
from livens.multibody.beam_element import BeamEnd
from livens.multibody.body import Body
from livens.multibody.sections import Section
from livens.types import Expr
from livens.validation import check_number

#: Tolerance of arc lengths of nodes, relative to the length of the beam.
_STATION_TOL = 1e-6


@dataclass(eq=False)
class Beam:
    """Beam: nodes from the first end to the last, with their arc lengths, and elements between them.

    A clamped end on the ground is the ground itself. Joints, springs and loads take nodes like any body.
    """

    name: str
    section: Section
    nodes: list[Body]
    stations: np.ndarray
    closed: bool = False
    elements: list[Element] = field(default_factory=list)
    #: Ends of each element: node, or offset point with frame.
    ends: list[tuple[BeamEnd, BeamEnd]] = field(default_factory=list)
    curved: bool = False

    @property
    def a(self) -> Body:
        """First node."""
        return self.nodes[0]

    @property
    def b(self) -> Body:
        """Last node."""
        return self.nodes[-1]

    @property
    def length(self) -> float:
        """Arc length in m."""
        return float(self.stations[-1])

    def at(self, s: float) -> Body:
        """Return the node at an arc length from the first end; `stations` of the beam guarantee one.

        Parameters
        ----------
        s : float
            Arc length in m.

        Returns
        -------
        Body
            Node of the beam.

        Raises
        ------
        InputError
            If there is no node at this arc length.
        """
        arc_length = check_number(f"{self.name}: the arc length", s)
        nearest = int(np.argmin(np.abs(self.stations - arc_length)))
        if abs(self.stations[nearest] - arc_length) > _STATION_TOL * self.length:
            if not 0 <= arc_length <= self.length:
                raise InputError(f"{self.name}: {arc_length:g} is not on the beam, which is {self.length:.6g} long")
            raise InputError(
                f"{self.name}: there is no node at {arc_length:g}, the nearest is at {self.stations[nearest]:.6g}; "
                f"request one with stations=[{arc_length:g}]"
            )
        return self.nodes[nearest]

    def __repr__(self) -> str:
        return f"<beam {self.name}: {len(self.elements)} elements, length {self.length:.6g}>"


def beam_outputs(system: System, beam: Beam, element_index: dict[int, int]) -> dict[str, Quantity]:
    """Return the outputs of a beam: node positions, and section forces and moments in section axes."""
    index = {name: i for i, name in enumerate(system.coordinates)}
    d = beam.nodes[0].dimension
    element_numbers = [element_index[id(element)] for element in beam.elements]

    def position(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
        positions = []
        for node in beam.nodes:
            i = [index[str(c)] for c in node.coordinates]
            positions.append(q[i[:d]] if i else ca.SX(ca.DM(node.reference_position)))
        return ca.vertcat(*positions)

    def section_forces(q: Expr, k: Expr, part: slice) -> Expr:
        components = []
        for element, (a, b), number_ in zip(beam.elements, beam.ends, element_numbers, strict=True):
            at = m.from_casadi(q[list(system.element_dofs[number_])])
            parameters = k[list(system.element_parameters[number_])][-element.parameters.size :]
            named = ParameterNamespace(element.parameters.unpack(m.from_casadi(parameters)))
            e = beam_element.element_strains(beam_element.strain_invariants(a, b, at, named), named, beam.curved)
            force = (
                named.stiffness @ m.array(e)
                if beam.section.is_coupled
                else [c * x for c, x in zip(named.stiffness, e, strict=True)]
            )
            components += [x / named.length for x in list(force)[part]]
        return m.to_casadi(m.array(components))

    n = len(beam.elements)
    return {
        "position": Quantity(f"nodes of {beam.name}", "m", position, shape=(len(beam.nodes), d)),
        "force": Quantity(
            f"forces in {beam.name}, axial and shear, element by element",
            "N",
            lambda q, v, lam, t, k: section_forces(q, k, slice(d)),
            shape=(n, d),
        ),
        "moment": Quantity(
            f"moments in {beam.name}, {'torsion and ' if d == 3 else ''}bending, element by element",
            "N m",
            lambda q, v, lam, t, k: section_forces(q, k, slice(d, None)),
            shape=(n, 3) if d == 3 else (n,),
        ),
    }
