"""Elastic plates of a drawing, as nets of beams."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import array, not_negative, number, one_of, positive, whole_number
from livens.multibody.beam import Beam
from livens.multibody.drawn_beams import DrawnBeams, heavier
from livens.multibody.parts import Part, axes_about, direction, point_in_space
from livens.multibody.sections import Section


class DrawnPlates(DrawnBeams):
    """The methods of `livens.Multibody` that add elastic plates."""

    def elastic_plate(
        self,
        name: str,
        *,
        at: Any,
        size: Any,
        thickness: float,
        E: float,
        density: float,
        nu: float = 0.3,
        normal: Any = "z",
        cells: Any = 8,
        edges: str = "free",
        damping: float = 0.0,
    ) -> list[list[Part]]:
        """A rectangular plate as a net of beams that cross each other; returned are its nodes, row by row.

        `size` are its edges along its first two axes, `at` is its centre, `cells` how many there are along each edge.
        Every beam bends and twists as stiffly as the strip of plate that it stands for, ``D = E t^3/(12 (1 - nu^2))``
        per width: small deflections under loads across it then are those of Kirchhoff's plate where its edges are held.
        Along free edges it differs by how the plate contracts across. Stretching is that of the beams alone. `edges`
        are "free" or "clamped" to the ground; nodes are bodies called ``name_i_j``, which take joints and loads.

        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> alu = dict(E=70e9, density=2700, thickness=1e-3)
        >>> nodes = mb.elastic_plate("plate", at=[0, 0, 0], size=[0.2, 0.2], cells=4, edges="clamped", **alu)
        >>> len(mb.bodies), nodes[0][0] is mb.ground
        (9, True)
        """
        self._new(name)
        if self.dimension != 3:
            raise InputError(f"{name}: a plate is a body in space")
        lengths = array(f"{name}: size", size, (2,))
        if not np.all(lengths > 0):
            raise InputError(f"{name}: both edges of a plate must be longer than 0, got {lengths.tolist()}")
        both = list(cells) if isinstance(cells, (list, tuple)) and len(cells) == 2 else [cells, cells]
        count = [whole_number(f"{name}: cells", n, least=2) for n in both]
        t, modulus, rho = (
            positive(f"{name}: {word}", x) for word, x in (("thickness", thickness), ("E", E), ("density", density))
        )
        if not -1 < number(f"{name}: nu", nu) <= 0.5:
            raise InputError(f"{name}: nu must be above -1 and at most 0.5, got {nu!r}")
        clamped = one_of(f"{name}: edges", edges, ("free", "clamped")) == "clamped"
        viscosity = not_negative(f"{name}: damping", damping)
        R = axes_about(direction(f"{name}: normal", normal))
        middle = point_in_space(f"{name}: at", at, 3)
        grids = [np.linspace(-edge / 2, edge / 2, n + 1) for edge, n in zip(lengths, count, strict=True)]
        places = np.array([[middle + R @ [x, y, 0.0] for y in grids[1]] for x in grids[0]])
        nodes: list[list[Part | None]] = [[None] * (count[1] + 1) for _ in range(count[0] + 1)]
        if clamped:
            for i, j in itertools.product(range(count[0] + 1), range(count[1] + 1)):
                if i in (0, count[0]) or j in (0, count[1]):
                    nodes[i][j] = self.ground
        across = np.column_stack([R[:, 1], -R[:, 0], R[:, 2]])
        for along, axes in ((0, R), (1, across)):
            other = 1 - along
            for line in range(count[other] + 1):
                edge = line in (0, count[other])
                if clamped and edge:
                    continue
                width = lengths[other] / count[other] * (0.5 if edge else 1.0)
                strip = _strip(width, t, modulus, nu, rho)
                where = [(i, line) if along == 0 else (line, i) for i in range(count[along] + 1)]
                self._line(f"{name} {'xy'[along]}{line}", nodes, where, name, places, axes, strip, viscosity)
        return [[self.ground if part is None else part for part in row] for row in nodes]

    def _line(
        self,
        name: str,
        nodes: list[list[Part | None]],
        where: list[tuple[int, int]],
        plate: str,
        places: np.ndarray,
        axes: np.ndarray,
        section: Section,
        viscosity: float,
    ) -> None:
        """One of the beams, through nodes that are there and others that it makes."""
        from livens.multibody.centrelines import Centreline  # as beams do

        points = np.array([places[i][j] for i, j in where])
        step = float(np.linalg.norm(points[1] - points[0]))
        stations = step * np.arange(len(where))
        found: list[Part] = []
        for at, (i, j) in enumerate(where):
            share = step * (0.5 if at in (0, len(where) - 1) else 1.0)
            part = nodes[i][j]
            if part is None:
                part = nodes[i][j] = self._node(f"{plate}_{i}_{j}", section, share, points[at], axes, False)
            elif part.element is not None:
                heavier(part, section, share, axes)
            found.append(part)
        beam = Beam(name, section, found, stations)
        line = Centreline(points, np.array([axes] * len(where)), stations, True)
        for at, (a, b) in enumerate(itertools.pairwise(found)):
            if a.element is not None or b.element is not None:
                self._element(beam, a, b, line, at, viscosity)
        self.beams[name] = beam
        self._elastic += beam.elements


def _strip(width: float, t: float, E: float, nu: float, density: float) -> Section:
    """A strip of a plate as a beam: both families of beams carry half of the mass, and all of the bending of theirs.

    ``D (w_xxxx + w_yyyy)`` is what bending resists; the twisting stiffness D per width of both families makes the
    ``2 D w_xxyy`` between them.
    """
    D, G, A = E * t**3 / (12 * (1 - nu**2)) * width, E / (2 * (1 + nu)), width * t
    line = density * A / 2
    about = [line * width**2 / 12, line * t**2 / 12]
    return Section(
        [E * A, 5 / 6 * G * A, 5 / 6 * G * A, D, D, E * t * width**3 / 12],
        line,
        [about[0] + about[1], about[1], about[0]],
        t / 2,
    )
