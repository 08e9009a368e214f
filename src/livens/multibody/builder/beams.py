"""Builder methods for flexible bodies: beams, elastic rings, trusses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.expressions.parameters import shared
from livens.models.element import Element
from livens.multibody import beam_element
from livens.multibody.beam import Beam
from livens.multibody.beam_element import BeamEnd, node_end
from livens.multibody.body import Body, frame_from_z, parse_direction, parse_point
from livens.multibody.body_elements import BodyElement, director_body, particle, planar_body
from livens.multibody.builder.bodies import BodyMethods
from livens.multibody.inertia import Inertia
from livens.multibody.point_forces import spring
from livens.multibody.sections import Section
from livens.scene import shapes
from livens.types import ArrayLike
from livens.validation import check_array, check_integer, check_nonnegative, check_positive

if TYPE_CHECKING:  # flexible-body modules are imported on demand
    from livens.multibody.beam_geometry import Centreline
    from livens.multibody.modal_ring import ModalRing


class BeamMethods(BodyMethods):
    """Methods of `livens.Multibody` that add beams, elastic rings and trusses."""

    def beam(
        self,
        name: str,
        *,
        points: object,
        section: Section,
        elements: int = 10,
        clamp_first: Body | None = None,
        clamp_last: Body | None = None,
        section_axis: ArrayLike | None = None,
        stations: ArrayLike = (),
        damping_time: float = 0.0,
    ) -> Beam:
        """Add a geometrically exact beam, unstressed in the reference configuration.

        The nodes are bodies called ``name_0``, ``name_1`` and so on, available as ``beam.a``, ``beam.b``,
        ``beam.nodes`` and ``beam.at(s)``. Results: ``name.position`` (m) of the nodes, ``name.force`` (N) and
        ``name.moment`` (N m) of the elements in section axes.

        Parameters
        ----------
        name : str
            Name of the beam.
        points : sequence of array_like, or callable
            Two points for a straight beam, more points for a spline through them, or a function of a number from 0 to 1
            that returns points; in m.
        section : Section
            Cross-section: stiffness and mass per length.
        elements : int, default 10
            Number of elements.
        clamp_first, clamp_last : Body, optional
            Body or ground that the first or last node is clamped to. The centre of the body, which may be a node of
            another beam, must be at the end of the beam.
        section_axis : {"x", "y", "z"} or array_like of shape (3,), optional
            Direction of the first axis of the section at the first end.
        stations : sequence of float, optional
            Arc lengths in m at which a node is required.
        damping_time : float, default 0
            Kelvin-Voigt time in s: stresses are those of ``strain + damping_time * strain rate``.

        Returns
        -------
        Beam
            Beam with its nodes and elements.

        Raises
        ------
        InputError
            If points coincide, stations are not on the beam, or a clamp is not at its end.
        """
        from livens.multibody.beam_geometry import centreline

        count = check_integer(f"{name}: elements", elements, minimum=1)
        requested: list[Any] = list(stations) if isinstance(stations, (list, tuple, np.ndarray)) else [stations]
        line = centreline(name, points, count, section_axis, requested, self.dimension)
        return self._beam(name, line, section, (clamp_first, clamp_last), False, damping_time)

    def elastic_ring(
        self,
        name: str,
        *,
        at: ArrayLike,
        radius: float,
        section: Section,
        axis: ArrayLike = "z",
        elements: int | None = None,
        modes: int | None = None,
        damping_time: float = 0.0,
    ) -> Any:
        """Add an elastic ring; the first section axis points inwards, the second along the axis of the ring.

        With `elements`, the ring is a closed beam with large deflections. With `modes`, it is one body with small
        inextensible bending in its plane: two coordinates each for 2, 3, ..., `modes` waves around the ring.
        ``ring.at(name, angle)`` then adds a point at an angle.

        Parameters
        ----------
        name : str
            Name of the ring.
        at : array_like or Marker
            Centre in the reference configuration, in m.
        radius : float
            Radius of the centre line in m.
        section : Section
            Cross-section: stiffness and mass per length.
        axis : {"x", "y", "z"} or array_like of shape (3,), default "z"
            Direction of the ring axis.
        elements : int, optional
            Number of beam elements; 24 by default.
        modes : int, optional
            Largest number of waves; not together with `elements`.
        damping_time : float, default 0
            Kelvin-Voigt time in s.

        Returns
        -------
        Beam or ModalRing
            Closed beam, or body with modal coordinates ``name.a2``, ``name.b2`` and so on.

        Raises
        ------
        InputError
            If both `elements` and `modes` are given.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(planar=True)
        >>> steel = lv.Section.rectangular(3.5e-3, 15e-3, E=206e9, density=7800)
        >>> ring = mb.elastic_ring("ring", at=[0, 0], radius=24e-3, section=steel, modes=6)
        >>> hold = mb.fixed("hold", mb.ground, ring)
        >>> (lv.linearise(mb.problem()).frequencies[:4] / 1e3).round(2)  # kHz, in pairs
        array([ 3.85,  3.85, 10.89, 10.89])
        """
        if modes is not None:
            if elements is not None:
                raise InputError(f"{name}: a ring needs either elements or modes, not both")
            return self._modal_ring(name, at, radius, section, axis, modes, damping_time)
        from livens.multibody.beam_geometry import circle

        count = check_integer(f"{name}: elements", 24 if elements is None else elements, minimum=3)
        line = circle(name, at, axis, check_positive(f"{name}: the radius", radius), count, self.dimension)
        return self._beam(name, line, section, (None, None), True, damping_time)

    def _modal_ring(
        self,
        name: str,
        at: ArrayLike,
        radius: float,
        section: Section,
        axis: ArrayLike,
        modes: int,
        damping_time: float,
    ) -> ModalRing:
        from livens.multibody.modal_ring import ModalRing, ring_body, ring_elements
        from livens.multibody.ring_modes import RingModes

        self._claim_name(name)
        most = check_integer(f"{name}: modes", modes, minimum=2)
        if not isinstance(section, Section) or section.is_coupled:
            raise InputError(f"{name}: the section must be a livens.Section without couplings, got {section!r}")
        checked_time = check_nonnegative(f"{name}: damping_time", damping_time)
        waves = tuple(range(2, most + 1))
        ring = RingModes(
            check_positive(f"{name}: the radius", radius), float(section.planar_stiffness()[2]), section.mass, waves
        )
        d = self.dimension
        position = parse_point(f"{name}: at", at, d)
        R = np.eye(2) if d == 2 else frame_from_z(parse_direction(f"{name}: axis", axis))
        body = ring_body(name, ring, section, d)
        modal_ring = ModalRing(name, body, position, R, modes=ring)
        self.bodies[name] = modal_ring
        modal_ring.point("centre", position)
        self._flexible_elements += ring_elements(body, ring, section, checked_time)
        return modal_ring

    def truss(
        self,
        name: str,
        *,
        points: ArrayLike,
        bars: ArrayLike,
        EA: float,
        mass_per_length: float,
        fixed: Sequence[int] = (),
        prestrain: float = 0.0,
    ) -> list[Body]:
        """Add a truss: elastic bars between particles called ``name_0``, ``name_1`` and so on.

        Bars are unstressed in the reference configuration unless `prestrain` is given. Cable nets are trusses with
        prestrain.

        Parameters
        ----------
        name : str
            Name of the truss.
        points : sequence of array_like
            Positions of the nodes in m.
        bars : array_like of shape (n_bars, 2)
            Pairs of node numbers.
        EA : float
            Axial stiffness of a bar in N.
        mass_per_length : float
            Mass per length of a bar in kg/m, lumped at its ends.
        fixed : sequence of int, optional
            Numbers of the nodes that are fixed to the ground.
        prestrain : float, default 0
            Strain of the bars in the reference configuration.

        Returns
        -------
        list of Body
            Nodes in the order of `points`; the ground for fixed nodes.

        Raises
        ------
        InputError
            If a bar does not connect two different nodes, or a free node has no bar.
        """
        self._claim_name(name)
        d = self.dimension
        if not isinstance(points, (list, tuple, np.ndarray)):
            raise InputError(f"{name}: points must be a list of points, got {points!r}")
        positions = [parse_point(f"{name}: points[{i}]", x, d) for i, x in enumerate(points)]
        pairs = check_array(f"{name}: bars", bars)
        stiffness, line_mass = (
            check_positive(f"{name}: EA", EA),
            check_positive(f"{name}: the mass per length", mass_per_length),
        )
        stretch = check_nonnegative(f"{name}: prestrain", prestrain)
        fixed_nodes = {check_integer(f"{name}: fixed", i, minimum=0, maximum=len(positions) - 1) for i in fixed}
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.array_equal(pairs, np.round(pairs)):
            raise InputError(f"{name}: bars must be pairs of numbers of points")
        connected = [(int(i), int(j)) for i, j in pairs]
        masses = np.zeros(len(positions))
        for i, j in connected:
            if not (0 <= i < len(positions) and 0 <= j < len(positions)) or i == j:
                raise InputError(f"{name}: a bar is between two of the {len(positions)} points, got ({i}, {j})")
            masses[[i, j]] += (
                line_mass * check_positive(f"{name}: a bar", np.linalg.norm(positions[j] - positions[i])) / 2
            )
        nodes: list[Body] = []
        for i, (position, node_mass) in enumerate(zip(positions, masses.tolist(), strict=True)):
            if i in fixed_nodes:
                nodes.append(self.ground)
                continue
            if not node_mass > 0:
                raise InputError(f"{name}: no bar is attached to point {i}, so it has no mass")
            element = particle(f"{name}_{i}", node_mass, dimension=d)
            self._claim_name(f"{name}_{i}")
            nodes.append(self._register_body(f"{name}_{i}", element, position, np.eye(d), None, ("particle",)))
        for i, j in connected:
            if i in fixed_nodes and j in fixed_nodes:
                continue
            a, b = (positions[n] if n in fixed_nodes else (nodes[n].element, np.zeros(d)) for n in (i, j))
            length = float(np.linalg.norm(positions[j] - positions[i])) / (1 + stretch)
            bar = spring(a, b, stiffness / length, length)
            bar.name = f"{name} {i}-{j}"
            self._flexible_elements.append(bar)
        return nodes

    # -- assembly of a beam -------------------------------------------------------------------------------------------
    def _beam(
        self,
        name: str,
        line: Centreline,
        section: Section,
        clamps: tuple[Body | None, Body | None],
        closed: bool,
        damping_time: float,
    ) -> Beam:
        self._claim_name(name)
        if not isinstance(section, Section):
            raise InputError(f"{name}: the section must be a livens.Section, got {section!r}")
        checked_time = check_nonnegative(f"{name}: damping_time", damping_time)
        lengths = np.diff(line.stations)
        tributary_lengths = np.zeros(len(line.stations))
        tributary_lengths[:-1] += lengths / 2
        tributary_lengths[1:] += lengths / 2
        last = len(tributary_lengths) - 1
        if closed:
            tributary_lengths[0] += tributary_lengths[last]
        for node, i in zip(clamps, (0, last), strict=True):
            if node is not None:
                self._check_clamp(name, node, line.positions[i])
        nodes: list[Body] = []
        for i, tributary_length in enumerate(tributary_lengths.tolist()):
            node = clamps[0] if i == 0 else clamps[1] if i == last else None
            if closed and i == last:
                node = nodes[0]
            if node is None:
                ends = i in (0, last)
                node = self._node(f"{name}_{i}", section, tributary_length, line.positions[i], line.frames[i], ends)
            elif node.element is not None and not (closed and i == last):
                add_lumped_mass(node, section, tributary_length, line.frames[i])
            nodes.append(node)
        beam = Beam(name, section, nodes, line.stations, closed, curved=not line.straight)
        for i, (a, b) in enumerate(itertools.pairwise(nodes)):
            if a is b or (a.element is None and b.element is None):
                raise InputError(
                    f"{name}: an element needs two different nodes, not both on the ground: use more elements"
                )
            self._add_element(beam, a, b, line, i, checked_time)
        self.beams[name] = beam
        self._flexible_elements += beam.elements
        return beam

    def _check_clamp(self, name: str, body: Body, position: np.ndarray) -> None:
        self._check_body(name, body)
        if body.element is None:
            return
        if not body.has_orientation:
            raise InputError(f"{name}: '{body.name}' is a particle; a beam cannot be clamped to it")
        if np.linalg.norm(body.reference_position - position) > 1e-9 * (1 + np.linalg.norm(position)):
            raise InputError(
                f"{name}: the centre of '{body.name}' is not at the end of the beam; use a joint at the end instead, "
                "such as mb.fixed"
            )

    def _node(
        self,
        name: str,
        section: Section,
        tributary_length: float,
        position: np.ndarray,
        axes: np.ndarray,
        is_traced: bool,
    ) -> Body:
        self._claim_name(name)
        visual = [shapes.sphere(np.zeros(self.dimension), section.radius, trace=0.0 if is_traced else None)]
        mass, inertia = section.mass * tributary_length, section.inertia * tributary_length
        element: BodyElement
        if self.dimension == 2:
            element = planar_body(name, mass, float(inertia[2]), visual=visual)
        else:
            element = director_body(name, Inertia(mass, inertia), visual=visual)
        return self._register_body(name, element, position, axes, None, ("node", section.radius))

    def _add_element(self, beam: Beam, a: Body, b: Body, line: Centreline, i: int, damping_time: float) -> None:
        sides = [_beam_end(node, line.frames[j]) for node, j in ((a, i), (b, i + 1))]
        (end_a, axes_a), (end_b, axes_b) = sides
        parameters: dict[str, Any] = dict(length=float(line.stations[i + 1] - line.stations[i]))
        for node, end, axes, names, position in (
            (a, end_a, axes_a, "XA", line.positions[i]),
            (b, end_b, axes_b, "YB", line.positions[i + 1]),
        ):
            if end.is_offset:
                parameters |= {names[0]: node.to_local(position), names[1]: axes}
        section = beam.section
        stiffness = section.stiffness if self.dimension == 3 else section.planar_stiffness()
        first_element = beam.elements[0] if beam.elements else None
        parameters["stiffness"] = stiffness if first_element is None else shared(first_element, "stiffness")
        if beam.curved:
            parameters["rest"] = beam_element.reference_strain(
                line.positions[i + 1] - line.positions[i], line.frames[i], line.frames[i + 1]
            )
        functions: dict[str, Any] = dict(
            potential=beam_element.strain_energy(end_a, end_b, beam.curved, section.is_coupled)
        )
        if damping_time:
            parameters["damping"] = damping_time if first_element is None else shared(first_element, "damping")
            functions["dissipation"] = beam_element.strain_damping(end_a, end_b, section.is_coupled)
        visual = beam_element.beam_visual(end_a, end_b, section.radius)
        coordinates = [*a.coordinates, *b.coordinates]
        beam.elements.append(Element(coordinates, parameters=parameters, name=beam.name, visual=visual, **functions))
        beam.ends.append((end_a, end_b))


def _beam_end(body: Body, axes: np.ndarray) -> tuple[BeamEnd, np.ndarray]:
    """Return the beam end at a body, and the section axes in body axes."""
    body_axes = body.in_body_axes(axes)
    if body.element is not None and np.abs(body_axes - np.eye(len(body_axes))).max() < 1e-12:
        return node_end(body.dimension), body_axes
    return BeamEnd(body.parametrisation, True), body_axes


def add_lumped_mass(body: Body, section: Section, tributary_length: float, axes: np.ndarray) -> None:
    """Add the lumped mass and inertia of half an element to a body."""
    element = body.element
    assert element is not None
    values = element.parameters.values
    mass = section.mass * tributary_length
    if body.dimension == 2:
        values["moment"] = values["moment"] + section.inertia[2] * tributary_length
    else:
        A = body.in_body_axes(axes)
        euler_tensor = Inertia(mass, section.inertia * tributary_length).euler_tensor
        values["euler"] = values["euler"] + A @ euler_tensor @ A.T
    values["mass"] = values["mass"] + mass
    element.mass += mass
