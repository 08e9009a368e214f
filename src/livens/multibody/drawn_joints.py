"""Joints of a drawing, rolling, and couplings of joints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.numbers import array, not_negative, number, positive
from livens.models.element import Element
from livens.multibody import joints
from livens.multibody.connection import Connection
from livens.multibody.couplings import Coupling
from livens.multibody.curves import OnCurve
from livens.multibody.drawing import Drawing
from livens.multibody.holding import Hold, held
from livens.multibody.joint import Joint
from livens.multibody.joint_table import PLANE, SPACE
from livens.multibody.parts import Part, axes_about, axes_along, direction, point_in_space
from livens.multibody.rolling import KnifeEdge, Rolling


class DrawnJoints(Drawing):
    """The methods of `livens.Multibody` that hold parts together."""

    def joint(
        self,
        what: str,
        name: str,
        first: Part,
        second: Part,
        *,
        at: Any = None,
        to: Any = None,
        axis: Any = None,
        other_axis: Any = None,
        lead: float | None = None,
    ) -> Joint:
        """A joint of a kind that the table has, between two parts, at a point of the drawing.

        By default it is at the centre of the second part. Where the drawing is not assembled, `at` is the point of the
        first part and `to` that of the second.
        """
        found = self.connections[name] = self._joint(what, name, first, second, at, to, axis, other_axis, lead)
        return found

    def hold(
        self,
        name: str,
        first: Part,
        second: Part,
        *,
        what: str = "fixed",
        frequency: float,
        damping: float = 1.0,
        beta: float = 0.8,
        at: Any = None,
        axis: Any = None,
        other_axis: Any = None,
    ) -> Hold:
        """What a joint would lock is held by stiff springs and dampers: a constraint by penalty.

        `what` is the kind of the joint, by default "fixed". Every locked direction by itself swings with the
        `frequency` in Hz; `damping` is in parts of the critical one. Schemes that tell forces apart, such as
        `semi-explicit`, take it `beta` of the way through a step: 0.8 damps what a step cannot resolve. By name there
        are ``name.force`` and ``name.violation``. An exact joint costs a multiplier and is the better choice elsewhere.

        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> ring = mb.ring("ring", at=[0, 0, 0], axis="x", radius=0.02, tube=0.004, mass=0.06)
        >>> housing = mb.hold("housing", mb.ground, ring, frequency=1e6)
        >>> run = mb.simulate(t_end=1e-4, h=1e-6, scheme="semi-explicit:0.5,0.8")
        >>> round(float(run["housing.force"][-1, 2]), 6)  # its weight, in N
        0.5886
        """
        rate = positive(f"{name}: the frequency", frequency)
        ratio = not_negative(f"{name}: the damping", damping)
        part = number(f"{name}: beta", beta)
        joint = self._joint(what, name, first, second, at, None, axis, other_axis, None)
        found = held(joint, rate, ratio, part)
        self._acting[name], self._holds[name] = found.element, found
        return found

    def _joint(
        self,
        what: str,
        name: str,
        first: Part,
        second: Part,
        at: Any,
        to: Any,
        axis: Any,
        other_axis: Any,
        lead: float | None,
    ) -> Joint:
        table = SPACE if self.dimension == 3 else PLANE
        if what not in table:
            raise InputError(f"there is no joint '{what}'{suggestion(what, table)}")
        self._new(name)
        self._between(name, first, second)
        kind = table[what]
        given = at if at is not None else to if to is not None else (second if second.element else first).position
        place = point_in_space(f"{name}: at", given, self.dimension)
        other = place if to is None else point_in_space(f"{name}: to", to, self.dimension)
        if kind.axis and axis is None:
            raise InputError(f"{name}: a {what} joint needs an axis")
        if self.dimension == 2:
            axes = axes_along(direction(f"{name}: axis", "x" if axis is None else axis, 2))
        elif what == "universal":
            axes = _crossed(name, axis, other_axis)
        else:
            axes = axes_about(direction(f"{name}: axis", "z" if axis is None else axis))
        if kind.pairs and not (first.turns and second.turns):
            raise InputError(f"{name}: a particle does not turn; a spherical joint holds it")
        if kind.lead and lead is None:
            raise InputError(f"{name}: a {what} needs a lead: how far it goes in one turn")
        pitch = None if lead is None else number(f"{name}: the lead", lead)
        return Joint(name, what, kind, first, second, (place, other), axes, pitch)

    def fixed(self, name: str, first: Part, second: Part, **where: Any) -> Joint:
        """The second part moves with the first."""
        return self.joint("fixed", name, first, second, **where)

    def revolute(self, name: str, first: Part, second: Part, *, axis: Any = None, **where: Any) -> Joint:
        """The second part turns about an axis of the first."""
        return self.joint("revolute", name, first, second, axis=axis, **where)

    def prismatic(self, name: str, first: Part, second: Part, *, axis: Any, **where: Any) -> Joint:
        """The second part moves along an axis of the first and does not turn."""
        return self.joint("prismatic", name, first, second, axis=axis, **where)

    def cylindrical(self, name: str, first: Part, second: Part, *, axis: Any, **where: Any) -> Joint:
        """The second part moves along an axis of the first and turns about it."""
        return self.joint("cylindrical", name, first, second, axis=axis, **where)

    def screw(self, name: str, first: Part, second: Part, *, axis: Any, lead: float, **where: Any) -> Joint:
        """The second part turns about an axis of the first and moves along it, by `lead` in every turn."""
        return self.joint("screw", name, first, second, axis=axis, lead=lead, **where)

    def universal(self, name: str, first: Part, second: Part, *, axis: Any, other_axis: Any, **where: Any) -> Joint:
        """Two axes that meet stay normal to each other: `axis` of the first part, `other_axis` of the second."""
        return self.joint("universal", name, first, second, axis=axis, other_axis=other_axis, **where)

    def spherical(self, name: str, first: Part, second: Part, **where: Any) -> Joint:
        """A point of one part is a point of the other; in the plane this is `revolute`."""
        return self.joint("spherical" if self.dimension == 3 else "revolute", name, first, second, **where)

    def planar(self, name: str, first: Part, second: Part, *, axis: Any, **where: Any) -> Joint:
        """The second part moves in a plane of the first, with this normal, and turns in it."""
        return self.joint("planar", name, first, second, axis=axis, **where)

    def point_on_line(self, name: str, first: Part, second: Part, *, axis: Any, **where: Any) -> Joint:
        """A point of the second part stays on a line of the first."""
        return self.joint("point_on_line", name, first, second, axis=axis, **where)

    def point_on_plane(self, name: str, first: Part, second: Part, *, axis: Any, **where: Any) -> Joint:
        """A point of the second part stays on a plane of the first, with this normal."""
        return self.joint("point_on_plane", name, first, second, axis=axis, **where)

    def distance(self, name: str, first: Any, second: Any, *, length: float | None = None) -> Element:
        """Two points keep their distance, by default that of the drawing: a rod without mass."""
        ends = self._ends(name, first, second)
        link = joints.rigid_link(*ends, self._drawn_length(first, second, length))
        self._links.append(self._act(name, link, "distance", first, second))
        return link

    # -- points on curves, rolling ------------------------------------------------------------------------------------
    def point_on_surface(
        self, name: str, first: Part, second: Part, *, surface: Callable[[Any], Any], at: Any = None, origin: Any = None
    ) -> Connection:
        """A point of the second part stays where a function of it is zero.

        ``surface(x)`` gets the point in the axes of the first part, seen from `origin` of the drawing.
        """
        return self._on("surface", name, first, second, surface, at, origin, 1)

    def point_on_curve(
        self, name: str, first: Part, second: Part, *, curve: Callable[[Any], Any], at: Any = None, origin: Any = None
    ) -> Connection:
        """A point of the second part stays where two functions of it are zero (in the plane: one).

        ``curve(x)`` gets the point in the axes of the first part, seen from `origin` of the drawing; a parabola is
        ``lambda x: [x[2] - x[0]**2, x[1]]``.
        """
        return self._on("curve", name, first, second, curve, at, origin, self.dimension - 1)

    def _on(
        self, what: str, name: str, first: Part, second: Part, function: Any, at: Any, origin: Any, count: int
    ) -> Connection:
        self._new(name)
        self._between(name, first, second)
        if second.element is None:
            raise InputError(f"{name}: the point on a {what} belongs to a body")
        place = second.position if at is None else point_in_space(f"{name}: at", at, self.dimension)
        begin = first.position if origin is None else point_in_space(f"{name}: origin", origin, self.dimension)
        found = OnCurve(name, what, first, second, at=place, origin=begin, function=function, count=count)
        self.connections[name] = found
        return found

    def rolling(
        self,
        name: str,
        first: Part,
        second: Part,
        *,
        radius: float,
        axis: Any = None,
        at: Any = (0.0, 0.0, 0.0),
        normal: Any = "z",
    ) -> Connection:
        """The second part rolls without slip on a plane of the ground: a ball, or with an `axis` a thin disc.

        The plane goes through `at` and has this normal, which points to the side that the body is on.
        """
        self._in_space(name, "rolling", first, second)
        size = positive(f"{name}: the radius", radius)
        axle = None if axis is None else direction(f"{name}: axis", axis)
        place, up = point_in_space(f"{name}: at", at, 3), direction(f"{name}: normal", normal)
        if up @ (second.position - place) <= 0:
            raise InputError(f"{name}: the centre of '{second.name}' is not on the side that the normal points to")
        found = Rolling(name, first, second, radius=size, at=place, normal=up, axle=axle)
        self.connections[name] = found
        return found

    def knife_edge(self, name: str, first: Part, second: Part, *, across: Any, at: Any = None) -> Connection:
        """A point of the second part does not move along its own direction `across`: a skate, a steered wheel."""
        self._in_space(name, "a knife edge", first, second)
        place = second.position if at is None else point_in_space(f"{name}: at", at, 3)
        found = KnifeEdge(name, first, second, at=place, across=direction(f"{name}: across", across))
        self.connections[name] = found
        return found

    def _in_space(self, name: str, what: str, first: Part, second: Part) -> None:
        self._new(name)
        self._between(name, first, second)
        if self.dimension != 3 or first is not self.ground or not second.turns or second.element is None:
            raise InputError(f"{name}: {what} is between the ground and a body that can turn, in space")

    # -- couplings ----------------------------------------------------------------------------------------------------
    def couple(self, name: str, *members: tuple[Joint, float], what: str = "coupling") -> Coupling:
        """The weighted sum of angles (or positions, of joints that only slide) of joints stays as it is."""
        self._new(name)
        found = []
        for member in members:
            if not isinstance(member, tuple) or len(member) != 2:
                raise InputError(f"{name}: the members of a coupling are (joint, weight), got {member!r}")
            joint, weight = member
            self._is_joint(name, joint)
            if not (joint.kind.angle or joint.kind.slide):
                raise InputError(f"{name}: the {joint.what} joint '{joint.name}' has no one angle or position")
            value = number(f"{name}: the weight of {joint.name}", weight)
            if value == 0:
                raise InputError(f"{name}: the weight of '{joint.name}' is zero: it would not take part")
            found.append((joint, "angle" if joint.kind.angle else "position", value))
        if len(found) < 2 or len({joint.name for joint, _, _ in found}) < len(found):
            raise InputError(f"{name}: a coupling is between different joints, at least two")
        self.couplings[name] = Coupling(name, what, found)
        return self.couplings[name]

    def gear(self, name: str, first: Joint, second: Joint, *, ratio: float) -> Coupling:
        """The second joint turns by `ratio` times the angle of the first; negative for wheels that mesh outside."""
        self._turns(name, first, second)
        return self.couple(name, (first, number(f"{name}: the ratio", ratio)), (second, -1.0), what="gear")

    def rack(self, name: str, pinion: Joint, slide: Joint, *, radius: float) -> Coupling:
        """The slide moves by the radius times the angle of the pinion; negative where it is on the other side."""
        self._needs(name, pinion, "angle")
        self._needs(name, slide, "slide")
        if slide.kind.angle:
            raise InputError(f"{name}: the rack '{slide.name}' must only slide")
        return self.couple(name, (pinion, number(f"{name}: the radius", radius)), (slide, -1.0), what="rack")

    def belt(self, name: str, first: Joint, second: Joint, *, radii: Any, crossed: bool = False) -> Coupling:
        """A belt over two pulleys of these radii, which does not slip."""
        self._turns(name, first, second)
        r = array(f"{name}: radii", radii, (2,))
        if not np.all(r > 0):
            raise InputError(f"{name}: the radii must be positive, got {r.tolist()}")
        return self.couple(name, (first, r[0]), (second, r[1] if crossed else -r[1]), what="belt")

    def differential(self, name: str, left: Joint, right: Joint, carrier: Joint) -> Coupling:
        """The carrier turns by the mean of the angles of the two others."""
        self._turns(name, left, right, carrier)
        return self.couple(name, (left, 0.5), (right, 0.5), (carrier, -1.0), what="differential")

    def _turns(self, name: str, *joints: Joint) -> None:
        for joint in joints:
            self._needs(name, joint, "angle")


def _crossed(name: str, axis: Any, other: Any) -> np.ndarray:
    """Axes of a universal joint: the first is that of the first part, the second that of the second."""
    if axis is None or other is None:
        raise InputError(f"{name}: a universal joint needs axis (of the first part) and other_axis (of the second)")
    first, second = direction(f"{name}: axis", axis), direction(f"{name}: other_axis", other)
    if abs(first @ second) > 1e-9:
        raise InputError(f"{name}: the two axes of a universal joint must be normal to each other")
    return np.column_stack([first, second, np.cross(first, second)])
