"""Builder methods for elastic plates, as grillages of beams."""

from __future__ import annotations

import itertools

import numpy as np

from livens.errors import InputError
from livens.multibody.beam import Beam
from livens.multibody.body import Body, frame_from_z, parse_direction, parse_point
from livens.multibody.builder.beams import BeamMethods, add_lumped_mass
from livens.multibody.sections import Section
from livens.types import ArrayLike
from livens.validation import check_array, check_choice, check_integer, check_nonnegative, check_number, check_positive


class PlateMethods(BeamMethods):
    """Methods of `livens.Multibody` that add elastic plates."""

    def elastic_plate(
        self,
        name: str,
        *,
        at: ArrayLike,
        size: ArrayLike,
        thickness: float,
        E: float,
        density: float,
        nu: float = 0.3,
        normal: ArrayLike = "z",
        cells: int = 8,
        edges: str = "free",
        damping_time: float = 0.0,
    ) -> list[list[Body]]:
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
        self._claim_name(name)
        if self.dimension != 3:
            raise InputError(f"{name}: an elastic plate needs a spatial model")
        lengths = check_array(f"{name}: size", size, (2,))
        if not np.all(lengths > 0):
            raise InputError(f"{name}: both edges of a plate must be longer than 0, got {lengths.tolist()}")
        cell_counts = list(cells) if isinstance(cells, (list, tuple)) and len(cells) == 2 else [cells, cells]
        count = [check_integer(f"{name}: cells", n, minimum=2) for n in cell_counts]
        t, modulus, rho = (
            check_positive(f"{name}: {argument}", x)
            for argument, x in (("thickness", thickness), ("E", E), ("density", density))
        )
        if not -1 < check_number(f"{name}: nu", nu) <= 0.5:
            raise InputError(f"{name}: nu must be above -1 and at most 0.5, got {nu!r}")
        clamped = check_choice(f"{name}: edges", edges, ("free", "clamped")) == "clamped"
        checked_time = check_nonnegative(f"{name}: damping", damping_time)
        R = frame_from_z(parse_direction(f"{name}: normal", normal))
        middle = parse_point(f"{name}: at", at, 3)
        grids = [np.linspace(-edge / 2, edge / 2, n + 1) for edge, n in zip(lengths, count, strict=True)]
        positions = np.array([[middle + R @ [x, y, 0.0] for y in grids[1]] for x in grids[0]])
        nodes: list[list[Body | None]] = [[None] * (count[1] + 1) for _ in range(count[0] + 1)]
        if clamped:
            for i, j in itertools.product(range(count[0] + 1), range(count[1] + 1)):
                if i in (0, count[0]) or j in (0, count[1]):
                    nodes[i][j] = self.ground
        transverse_axes = np.column_stack([R[:, 1], -R[:, 0], R[:, 2]])
        for direction_index, axes in ((0, R), (1, transverse_axes)):
            other = 1 - direction_index
            for line in range(count[other] + 1):
                edge = line in (0, count[other])
                if clamped and edge:
                    continue
                width = lengths[other] / count[other] * (0.5 if edge else 1.0)
                strip = _strip_section(width, t, modulus, nu, rho)
                indices = [(i, line) if direction_index == 0 else (line, i) for i in range(count[direction_index] + 1)]
                self._grid_beam(
                    f"{name} {'xy'[direction_index]}{line}", nodes, indices, name, positions, axes, strip, checked_time
                )
        return [[self.ground if node is None else node for node in row] for row in nodes]

    def _grid_beam(
        self,
        name: str,
        nodes: list[list[Body | None]],
        indices: list[tuple[int, int]],
        plate: str,
        positions: np.ndarray,
        axes: np.ndarray,
        section: Section,
        damping_time: float,
    ) -> None:
        """Add one beam of the grillage, through existing and new nodes."""
        from livens.multibody.beam_geometry import Centreline  # imported on demand

        points = np.array([positions[i][j] for i, j in indices])
        step = float(np.linalg.norm(points[1] - points[0]))
        stations = step * np.arange(len(indices))
        beam_nodes: list[Body] = []
        for at, (i, j) in enumerate(indices):
            tributary_length = step * (0.5 if at in (0, len(indices) - 1) else 1.0)
            node = nodes[i][j]
            if node is None:
                node = nodes[i][j] = self._node(f"{plate}_{i}_{j}", section, tributary_length, points[at], axes, False)
            elif node.element is not None:
                add_lumped_mass(node, section, tributary_length, axes)
            beam_nodes.append(node)
        beam = Beam(name, section, beam_nodes, stations)
        line = Centreline(points, np.array([axes] * len(indices)), stations, True)
        for at, (a, b) in enumerate(itertools.pairwise(beam_nodes)):
            if a.element is not None or b.element is not None:
                self._add_element(beam, a, b, line, at, damping_time)
        self.beams[name] = beam
        self._flexible_elements += beam.elements


def _strip_section(width: float, t: float, E: float, nu: float, density: float) -> Section:
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
