"""Elastic bodies of a drawing: beams, elastic rings, trusses."""

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

if TYPE_CHECKING:  # centre lines and modes are imported where there are elastic bodies: most drawings have none
    from livens.multibody.centrelines import Centreline
    from livens.multibody.modal_ring import ModalRing


class DrawnBeams(DrawnBodies):
    """The methods of `livens.Multibody` that add elastic bodies."""

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
        """A geometrically exact beam, relaxed as it is drawn: straight between two `points`, smoothly curved through
        more of them, or along a function of a number from 0 to 1 that returns points.

        Its nodes are bodies called ``name_0``, ``name_1`` and so on, found by ``beam.a``, ``beam.b``, ``beam.nodes``
        and ``beam.at(s)``; `stations` are arc lengths at which there must be one. An end that `first` or `last` names
        is clamped to that part: the ground, or a body (a node of another beam, too) whose centre is there. `across` is
        the direction of the section's first axis at the first end. `damping` is the time of a material of Kelvin and
        Voigt: stresses are those of ``strain + damping * strain rate``.
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
        """An elastic ring; its section's first axis points inwards, the other along the axis of the ring.

        By `elements`, of which there are 24 if nothing is said, it is a beam that closes upon itself, and bends as far
        as it likes. By `modes` it is one body that bends a little in its own plane, without stretching, with two
        coordinates for 2, 3, ... and up to `modes` waves around it: far fewer than a beam has. ``ring.at(name, angle)``
        is then its point at an angle. `damping` is the time of a material of Kelvin and Voigt.

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
                raise InputError(f"{name}: a ring is made of elements or of modes, not of both")
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
        """Elastic bars between joints: particles called ``name_0``, ``name_1`` and so on, in the order of `points`.

        `bars` are pairs of numbers of points; each has the stiffness `EA` over its length and the `mass` per length,
        half at each end. Points that are `fixed` are points of the ground. Bars are relaxed as they are drawn, or
        longer than they would like to be by `prestrain`. Nets of cables are trusses that are stretched first.
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
                raise InputError(f"{name}: no bar ends in point {i}, so it has no mass")
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

    # -- how a beam is put together -----------------------------------------------------------------------------------
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
                    f"{name}: an element needs two different parts, one of them a body: take more elements"
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
            raise InputError(f"{name}: '{part.name}' is a particle, which no beam can be clamped to")
        if np.linalg.norm(part.position - place) > 1e-9 * (1 + np.linalg.norm(place)):
            raise InputError(
                f"{name}: the centre of '{part.name}' is not at the end of the beam; hold the end by a joint instead, "
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
    """How an element sees a part, and the axes of the section in it."""
    inside = part.inwards(axes)
    if part.element is not None and np.abs(inside - np.eye(len(inside))).max() < 1e-12:
        return node_end(part.dimension), inside
    return End(part.placement, True), inside


def heavier(part: Part, section: Section, share: float, axes: np.ndarray) -> None:
    """Half of an element belongs to the body that it ends in."""
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
