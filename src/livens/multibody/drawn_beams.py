"""Builder methods for flexible bodies: beams, elastic rings, trusses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import array, not_negative, positive, whole_number
from livens.expressions.parameters import same_as
from livens.models import shapes
from livens.models.element import Element
from livens.multibody import beams
from livens.multibody.beam import Beam
from livens.multibody.beams import End, node_end
from livens.multibody.bodies import Body, director_body, particle, planar_body
from livens.multibody.drawn_bodies import DrawnBodies
from livens.multibody.forces import spring
from livens.multibody.inertia import Inertia
from livens.multibody.parts import Part, axes_about, direction, point_in_space
from livens.multibody.sections import Section

if TYPE_CHECKING:  # flexible-body modules are imported on demand
    from livens.multibody.centrelines import Centreline
    from livens.multibody.modal_ring import ModalRing


class DrawnBeams(DrawnBodies):
    """Methods of `livens.Multibody` that add beams, elastic rings and trusses."""

    def beam(
        self,
        name: str,
        *,
        points: Any,
        section: Section,
        elements: int = 10,
        first: Part | None = None,
        last: Part | None = None,
        across: Any = None,
        stations: Sequence[float] = (),
        damping: float = 0.0,
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
        from livens.multibody.centrelines import centreline

        count = whole_number(f"{name}: elements", elements, least=1)
        wanted: list[Any] = list(stations) if isinstance(stations, (list, tuple, np.ndarray)) else [stations]
        line = centreline(name, points, count, across, wanted, self.dimension)
        return self._beam(name, line, section, (first, last), False, damping)

    def elastic_ring(
        self,
        name: str,
        *,
        at: Any,
        radius: float,
        section: Section,
        axis: Any = "z",
        elements: int | None = None,
        modes: int | None = None,
        damping: float = 0.0,
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
            return self._modal_ring(name, at, radius, section, axis, modes, damping)
        from livens.multibody.centrelines import circle

        count = whole_number(f"{name}: elements", 24 if elements is None else elements, least=3)
        line = circle(name, at, axis, positive(f"{name}: the radius", radius), count, self.dimension)
        return self._beam(name, line, section, (None, None), True, damping)

    def _modal_ring(
        self, name: str, at: Any, radius: float, section: Section, axis: Any, modes: int, damping: float
    ) -> ModalRing:
        from livens.multibody.modal_ring import ModalRing, ring_body, ring_elements
        from livens.multibody.ring_modes import RingModes

        self._new(name)
        most = whole_number(f"{name}: modes", modes, least=2)
        if not isinstance(section, Section) or section.full:
            raise InputError(f"{name}: the section must be a livens.Section without couplings, got {section!r}")
        viscosity = not_negative(f"{name}: damping", damping)
        waves = tuple(range(2, most + 1))
        ring = RingModes(positive(f"{name}: the radius", radius), float(section.planar()[2]), section.mass, waves)
        d = self.dimension
        place = point_in_space(f"{name}: at", at, d)
        R = np.eye(2) if d == 2 else axes_about(direction(f"{name}: axis", axis))
        body = ring_body(name, ring, section, d)
        made = ModalRing(name, body, place, R, modes=ring)
        self.bodies[name] = made
        made.point("centre", place)
        self._elastic += ring_elements(body, ring, section, viscosity)
        return made

    def truss(
        self,
        name: str,
        *,
        points: Any,
        bars: Any,
        EA: float,
        mass: float,
        fixed: Sequence[int] = (),
        prestrain: float = 0.0,
    ) -> list[Part]:
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
        self._new(name)
        d = self.dimension
        if not isinstance(points, (list, tuple, np.ndarray)):
            raise InputError(f"{name}: points must be a list of points, got {points!r}")
        places = [point_in_space(f"{name}: points[{i}]", x, d) for i, x in enumerate(points)]
        pairs = array(f"{name}: bars", bars)
        stiffness, line = positive(f"{name}: EA", EA), positive(f"{name}: the mass per length", mass)
        stretch = not_negative(f"{name}: prestrain", prestrain)
        held = {whole_number(f"{name}: fixed", i, least=0, most=len(places) - 1) for i in fixed}
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.array_equal(pairs, np.round(pairs)):
            raise InputError(f"{name}: bars must be pairs of numbers of points")
        joined = [(int(i), int(j)) for i, j in pairs]
        masses = np.zeros(len(places))
        for i, j in joined:
            if not (0 <= i < len(places) and 0 <= j < len(places)) or i == j:
                raise InputError(f"{name}: a bar is between two of the {len(places)} points, got ({i}, {j})")
            masses[[i, j]] += line * positive(f"{name}: a bar", np.linalg.norm(places[j] - places[i])) / 2
        found: list[Part] = []
        for i, (place, own) in enumerate(zip(places, masses.tolist(), strict=True)):
            if i in held:
                found.append(self.ground)
                continue
            if not own > 0:
                raise InputError(f"{name}: no bar is attached to point {i}, so it has no mass")
            element = particle(f"{name}_{i}", own, dimension=d)
            self._new(f"{name}_{i}")
            found.append(self._added(f"{name}_{i}", element, place, np.eye(d), None, ("particle",)))
        for i, j in joined:
            if i in held and j in held:
                continue
            a, b = (places[n] if n in held else (found[n].element, np.zeros(d)) for n in (i, j))
            length = float(np.linalg.norm(places[j] - places[i])) / (1 + stretch)
            bar = spring(a, b, stiffness / length, length)
            bar.name = f"{name} {i}-{j}"
            self._elastic.append(bar)
        return found

    # -- assembly of a beam -------------------------------------------------------------------------------------------
    def _beam(
        self,
        name: str,
        line: Centreline,
        section: Section,
        held: tuple[Part | None, Part | None],
        closed: bool,
        damping: float,
    ) -> Beam:
        self._new(name)
        if not isinstance(section, Section):
            raise InputError(f"{name}: the section must be a livens.Section, got {section!r}")
        viscosity = not_negative(f"{name}: damping", damping)
        lengths = np.diff(line.stations)
        shares = np.zeros(len(line.stations))
        shares[:-1] += lengths / 2
        shares[1:] += lengths / 2
        last = len(shares) - 1
        if closed:
            shares[0] += shares[last]
        for part, i in zip(held, (0, last), strict=True):
            if part is not None:
                self._clampable(name, part, line.places[i])
        nodes: list[Part] = []
        for i, share in enumerate(shares.tolist()):
            part = held[0] if i == 0 else held[1] if i == last else None
            if closed and i == last:
                part = nodes[0]
            if part is None:
                ends = i in (0, last)
                part = self._node(f"{name}_{i}", section, share, line.places[i], line.axes[i], ends)
            elif part.element is not None and not (closed and i == last):
                heavier(part, section, share, line.axes[i])
            nodes.append(part)
        beam = Beam(name, section, nodes, line.stations, closed, curved=not line.straight)
        for i, (a, b) in enumerate(itertools.pairwise(nodes)):
            if a is b or (a.element is None and b.element is None):
                raise InputError(
                    f"{name}: an element needs two different nodes, not both on the ground: use more elements"
                )
            self._element(beam, a, b, line, i, viscosity)
        self.beams[name] = beam
        self._elastic += beam.elements
        return beam

    def _clampable(self, name: str, part: Any, place: np.ndarray) -> None:
        self._known(name, part)
        if part.element is None:
            return
        if not part.turns:
            raise InputError(f"{name}: '{part.name}' is a particle; a beam cannot be clamped to it")
        if np.linalg.norm(part.position - place) > 1e-9 * (1 + np.linalg.norm(place)):
            raise InputError(
                f"{name}: the centre of '{part.name}' is not at the end of the beam; use a joint at the end instead, "
                "such as mb.fixed"
            )

    def _node(
        self, name: str, section: Section, share: float, place: np.ndarray, axes: np.ndarray, traced: bool
    ) -> Part:
        self._new(name)
        look = [shapes.sphere(np.zeros(self.dimension), section.radius, trace=0.0 if traced else None)]
        mass, inertia = section.mass * share, section.inertia * share
        element: Body
        if self.dimension == 2:
            element = planar_body(name, mass, float(inertia[2]), look=look)
        else:
            element = director_body(name, Inertia(mass, inertia), look=look)
        return self._added(name, element, place, axes, None, ("node", section.radius))

    def _element(self, beam: Beam, a: Part, b: Part, line: Centreline, i: int, viscosity: float) -> None:
        sides = [_side(part, line.axes[j]) for part, j in ((a, i), (b, i + 1))]
        (first, of_first), (second, of_second) = sides
        parameters: dict[str, Any] = dict(length=float(line.stations[i + 1] - line.stations[i]))
        for part, end, axes, names, place in (
            (a, first, of_first, "XA", line.places[i]),
            (b, second, of_second, "YB", line.places[i + 1]),
        ):
            if end.offset:
                parameters |= {names[0]: part.lever(place), names[1]: axes}
        section = beam.section
        stiffness = section.stiffness if self.dimension == 3 else section.planar()
        tied = beam.elements[0] if beam.elements else None
        parameters["stiffness"] = stiffness if tied is None else same_as(tied, "stiffness")
        if beam.curved:
            parameters["rest"] = beams.rest_of(line.places[i + 1] - line.places[i], line.axes[i], line.axes[i + 1])
        functions: dict[str, Any] = dict(potential=beams.strain_energy(first, second, beam.curved, section.full))
        if viscosity:
            parameters["damping"] = viscosity if tied is None else same_as(tied, "damping")
            functions["dissipation"] = beams.strain_damping(first, second, section.full)
        look = beams.tube(first, second, section.radius)
        both = [*a.coordinates, *b.coordinates]
        beam.elements.append(Element(both, parameters=parameters, name=beam.name, look=look, **functions))
        beam.ends.append((first, second))


def _side(part: Part, axes: np.ndarray) -> tuple[End, np.ndarray]:
    """Return the beam end at a body, and the section axes in body axes."""
    inside = part.inwards(axes)
    if part.element is not None and np.abs(inside - np.eye(len(inside))).max() < 1e-12:
        return node_end(part.dimension), inside
    return End(part.placement, True), inside


def heavier(part: Part, section: Section, share: float, axes: np.ndarray) -> None:
    """Add the lumped mass and inertia of half an element to a body."""
    element = part.element
    assert element is not None
    values = element.parameters.values
    mass = section.mass * share
    if part.dimension == 2:
        values["moment"] = values["moment"] + section.inertia[2] * share
    else:
        A = part.inwards(axes)
        own = Inertia(mass, section.inertia * share).euler_tensor
        values["euler"] = values["euler"] + A @ own @ A.T
    values["mass"] = values["mass"] + mass
    element.mass += mass
