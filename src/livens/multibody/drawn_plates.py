"""Builder methods for elastic plates, as grillages of beams."""

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
    """Methods of `livens.Multibody` that add elastic plates."""

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
        """Add a rectangular elastic plate as a grillage of crossing beams.

        Every beam has the bending and torsional stiffness of its plate strip, ``D = E t^3/(12 (1 - nu^2))`` per width.
        Small transverse deflections converge to those of the Kirchhoff plate if the edges are supported. At free edges
        the transverse contraction of the plate is missing. In-plane stretching is that of the beams.

        Parameters
        ----------
        name : str
            Name of the plate; its nodes are bodies called ``name_i_j``.
        at : array_like of shape (3,) or Marker
            Centre in the reference configuration, in m.
        size : array_like of shape (2,)
            Edge lengths in m.
        thickness : float
            Thickness in m.
        E : float
            Young's modulus in Pa.
        density : float
            Density in kg/m^3.
        nu : float, default 0.3
            Poisson's ratio.
        normal : {"x", "y", "z"} or array_like of shape (3,), default "z"
            Normal of the plate.
        cells : int or pair of int, default 8
            Number of cells along the edges.
        edges : {"free", "clamped"}, default "free"
            Support of the edges; "clamped" means clamped to the ground.
        damping_time : float, default 0
            Kelvin-Voigt time in s.

        Returns
        -------
        list of list of Body
            Nodes, row by row; the ground for clamped nodes.

        Raises
        ------
        InputError
            If the model is planar, or a size or material value is invalid.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> alu = dict(E=70e9, density=2700, thickness=1e-3)
        >>> nodes = mb.elastic_plate("plate", at=[0, 0, 0], size=[0.2, 0.2], cells=4, edges="clamped", **alu)
        >>> len(mb.bodies), nodes[0][0] is mb.ground
        (9, True)
        """
        self._new(name)
        if self.dimension != 3:
            raise InputError(f"{name}: an elastic plate needs a spatial model")
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
        """Add one beam of the grillage, through existing and new nodes."""
        from livens.multibody.centrelines import Centreline  # imported on demand

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
    """Return the beam section of a plate strip: half of the mass for each family of beams, and its full bending.

    Bending contributes ``D (w_xxxx + w_yyyy)``; the torsional stiffness D per width of both families contributes
    ``2 D w_xxyy``.
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
