"""Mechanisms by drawing them: bodies, joints and forces, said once, in space."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

import livens
from livens import math as m
from livens.errors import InputError, ModelError, suggestion, with_words
from livens.expressions.numbers import array, not_negative, number, positive
from livens.expressions.parameters import same_as
from livens.models.element import Element
from livens.models.problem import Problem
from livens.models.system import System
from livens.multibody import actuators, forces, joints, loads, shapes
from livens.multibody.assembly import Assembly, Target
from livens.multibody.bodies import Body, Point, coordinates, director_body, particle, planar_body
from livens.multibody.inertia import Inertia
from livens.multibody.joint import Joint
from livens.multibody.joint_table import PLANE, SPACE
from livens.multibody.mobility import Report, report
from livens.multibody.momenta import angular_momentum, linear_momentum
from livens.multibody.named import quantities
from livens.multibody.parts import Marker, Part, axes_about, axes_along, direction, point_in_space

#: An angle above this at the start is taken for degrees.
_MOST_RADIANS = 50.0


class Multibody:
    """A mechanism: parts are added by its methods, each with a name first, then the bodies it is between.

    Points and axes are those of the drawing, in space; ``planar=True`` is for bodies in the plane x, y. The drawing
    need not be assembled: `start` says what is known, the rest is solved for.

    >>> import livens as lv
    >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
    >>> arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    >>> hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
    >>> mb.start(hinge, angle=90 * lv.deg, rate=0.5)
    >>> mb.check().mobility
    1
    """

    def __init__(self, gravity: Any = None, *, planar: bool = False, redundant: str = "auto") -> None:
        self.dimension = 2 if planar else 3
        self.gravity = None if gravity is None else np.atleast_1d(array("gravity", gravity))[: self.dimension]
        if self.gravity is not None and self.gravity.shape != (self.dimension,):
            raise InputError(f"gravity must be a vector of {self.dimension} numbers, got {gravity!r}")
        self.redundant = redundant
        self.ground = Part("ground", None, np.zeros(self.dimension), np.eye(self.dimension))
        self.bodies: dict[str, Part] = {}
        self.joints: dict[str, Joint] = {}
        self._acting: dict[str, Element] = {}
        self._targets: list[Target] = []
        self._links: list[Element] = []
        self._observed: dict[str, Callable[..., Any]] = {}

    # -- bodies -------------------------------------------------------------------------------------------------------
    def body(
        self,
        name: str,
        *,
        mass: float,
        inertia: Any,
        position: Any = None,
        rotation: Any = None,
        points: Mapping[str, Any] | None = None,
        shape: tuple[Any, ...] = (),
    ) -> Part:
        """A rigid body: its mass, its inertia about its centre of mass in its own axes, and where it is drawn.

        `inertia` is a tensor or its three principal values (in the plane: one number), `rotation` a matrix with the
        body's axes as columns. `points` are named points, given in space.
        """
        self._new(name)
        d = self.dimension
        at = np.zeros(d) if position is None else point_in_space(f"{name}: position", position, d)
        R = np.eye(d) if rotation is None else array(f"{name}: rotation", rotation, (d, d))
        if np.abs(R.T @ R - np.eye(d)).max() > 1e-9 or np.linalg.det(R) < 0:
            raise InputError(f"{name}: rotation must be a rotation matrix, with orthonormal columns")
        try:
            element: Body
            if d == 2:
                moment = inertia if np.ndim(inertia) == 0 else np.ravel(inertia)[-1]
                element = planar_body(name, mass, float(moment))
            else:
                element = director_body(name, Inertia(mass, inertia))
        except ModelError as error:
            raise InputError(f"{name}: {error}") from None
        return self._added(name, element, at, R, points, shape)

    def rod(self, name: str, *, a: Any, b: Any, mass: float, radius: float | None = None) -> Part:
        """A round rod from one point to another; thin if no radius is given."""
        ends = [point_in_space(f"{name}: {which}", x, self.dimension) for which, x in (("a", a), ("b", b))]
        length = positive(f"{name}: the length", np.linalg.norm(ends[1] - ends[0]))
        R = axes_along((ends[1] - ends[0]) / length)
        moments = shapes.rod(length, positive(f"{name}: the mass", mass), radius)
        centre, named = (ends[0] + ends[1]) / 2, dict(a=ends[0], b=ends[1])
        shape = ("rod", length, radius or shapes.SLENDER * length)
        return self.body(name, mass=mass, inertia=moments, position=centre, rotation=R, points=named, shape=shape)

    def box(self, name: str, *, at: Any, size: Any, mass: float, rotation: Any = None) -> Part:
        """A box about its centre; in the plane, `size` may be two numbers."""
        edges = array(f"{name}: size", size)
        moments = shapes.box(np.append(edges, 0.0) if len(edges) == 2 else edges, mass)
        shape = ("box", *edges.tolist())
        return self.body(name, mass=mass, inertia=moments, position=at, rotation=rotation, shape=shape)

    def plate(self, name: str, *, at: Any, size: Any, mass: float, rotation: Any = None) -> Part:
        """A thin plate in its own first two axes."""
        return self.box(name, at=at, size=[*array(f"{name}: size", size, (2,)), 0.0], mass=mass, rotation=rotation)

    def cylinder(self, name: str, *, at: Any, axis: Any = "z", length: float, radius: float, mass: float) -> Part:
        """A full cylinder about its centre."""
        return self._round(name, at, axis, shapes.cylinder(length, radius, mass), mass, ("cylinder", length, radius))

    def ring(self, name: str, *, at: Any, axis: Any = "z", radius: float, mass: float, tube: float = 0.0) -> Part:
        """A ring about its centre, with a round section."""
        return self._round(name, at, axis, shapes.ring(radius, mass, tube), mass, ("ring", radius, tube))

    def sphere(self, name: str, *, at: Any, radius: float, mass: float) -> Part:
        """A full sphere."""
        moments, shape = shapes.sphere(radius, mass), ("sphere", radius)
        return self.body(name, mass=mass, inertia=moments, position=at, shape=shape)

    def particle(self, name: str, *, at: Any, mass: float) -> Part:
        """A point with mass."""
        self._new(name)
        place = point_in_space(f"{name}: at", at, self.dimension)
        element = particle(name, mass, dimension=self.dimension)
        return self._added(name, element, place, np.eye(self.dimension), None, ("particle",))

    def _round(self, name: str, at: Any, axis: Any, moments: Any, mass: float, shape: tuple[Any, ...]) -> Part:
        R = axes_about(direction(f"{name}: axis", axis)) if self.dimension == 3 else None
        return self.body(name, mass=mass, inertia=moments, position=at, rotation=R, shape=shape)

    def _added(
        self, name: str, element: Body, at: np.ndarray, R: np.ndarray, points: Mapping[str, Any] | None, shape: Any
    ) -> Part:
        part = self.bodies[name] = Part(name, element, at, R, shape=shape)
        for point, place in {"centre": at, **(points or {})}.items():
            part.point(point, place)
        return part

    def _new(self, name: str) -> None:
        """Names are told apart from one another; results find things by them."""
        if not isinstance(name, str) or not name or "." in name:
            raise InputError(f"a name is a text without dots, got {name!r}")
        if name == "ground" or name in {**self.bodies, **self.joints, **self._acting}:
            raise InputError(f"there is a '{name}' already")
        self.__dict__.pop("_made", None)

    # -- joints -------------------------------------------------------------------------------------------------------
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
    ) -> Joint:
        """A joint of a kind that the table has, between two parts, at a point of the drawing.

        By default it is at the centre of the second part. Where the drawing is not assembled, `at` is the point of the
        first part and `to` that of the second.
        """
        table = SPACE if self.dimension == 3 else PLANE
        if what not in table:
            raise InputError(f"there is no joint '{what}'{suggestion(what, table)}")
        self._new(name)
        for part in (first, second):
            self._known(name, part)
        if first is second or (first.element is None and second.element is None):
            raise InputError(f"{name}: a joint is between two different parts, one of them a body")
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
        self.joints[name] = Joint(name, what, kind, first, second, (place, other), axes)
        return self.joints[name]

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
        places = [point_in_space(name, x, self.dimension) for x in (first, second)]
        drawn = float(np.linalg.norm(places[1] - places[0]))
        link = joints.rigid_link(self._end(name, first), self._end(name, second), drawn if length is None else length)
        self._links.append(self._act(name, link))
        return link

    # -- forces -------------------------------------------------------------------------------------------------------
    def spring(self, name: str, first: Any, second: Any, *, stiffness: float, length: float | None = None) -> Element:
        """A spring between two points; relaxed as it is drawn, unless a length is given."""
        ends = self._end(name, first), self._end(name, second)
        return self._act(name, forces.spring(*ends, stiffness, self._drawn_length(first, second, length)))

    def damper(self, name: str, first: Any, second: Any, *, viscosity: float) -> Element:
        """A damper between two points, along the line through both."""
        return self._act(name, forces.damper(self._end(name, first), self._end(name, second), viscosity))

    def spring_damper(
        self, name: str, first: Any, second: Any, *, stiffness: float, viscosity: float, length: float | None = None
    ) -> tuple[Element, Element]:
        """Both between the same two points; the damper is called ``name damper``."""
        spring = self.spring(name, first, second, stiffness=stiffness, length=length)
        return spring, self.damper(f"{name} damper", first, second, viscosity=viscosity)

    def torsion_spring(self, name: str, joint: Joint, *, stiffness: float, rest: float = 0.0) -> Element:
        """A spring against the angle of a joint, within half a turn of its rest."""
        given = dict(stiffness=not_negative(f"{name}: the stiffness", stiffness), rest=number(f"{name}: rest", rest))
        self._needs(name, joint, "angle")
        return self._act(name, joint.acting(name, given, potential=actuators.torsion(joint.a, joint.b)))

    def torsion_damper(self, name: str, joint: Joint, *, viscosity: float) -> Element:
        """A damper against the rate of a joint."""
        given = dict(viscosity=not_negative(f"{name}: the viscosity", viscosity))
        self._needs(name, joint, "angle")
        return self._act(name, joint.acting(name, given, dissipation=actuators.turning_damper(joint.a, joint.b)))

    def motor(
        self,
        joint: Joint,
        *,
        torque: Any = None,
        force: Any = None,
        parameters: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> Element:
        """A torque in a joint that turns, or a force in one that slides, on both bodies.

        It is a number or a law of time, angle and rate (position and speed), ``law(t, angle, rate)``, and of `k` if
        there are parameters. The angle is that within half a turn of the drawn pose.
        """
        if (torque is None) == (force is None):
            raise InputError("a motor has either a torque or a force")
        name = name or f"{joint.name} motor"
        self._needs(name, joint, "angle" if torque is not None else "slide")
        given = torque if torque is not None else force
        law = given if callable(given) else _constant(number(f"{name}: the law", given))
        make = actuators.motor if torque is not None else actuators.pusher
        acting = make(joint.a, joint.b, law, bool(parameters))
        return self._act(name, joint.acting(name, dict(parameters or {}), forces=acting))

    def drive(self, joint: Joint, *, angle: Callable[[Any], Any], name: str = "") -> Element:
        """The angle of a joint is a function of time."""
        name = name or f"{joint.name} drive"
        self._needs(name, joint, "angle")
        law = actuators.drive(joint.a, joint.b, angle)
        return self._act(name, joint.acting(name, {}, constraints=law, constraint_names=["angle"]))

    def wrench(
        self, name: str, body: Part, *, force: Any = None, torque: Any = None, at: Any = None, frame: str = "space"
    ) -> None:
        """A force at a point (by default the centre) and a torque on a body: constant, or functions of time."""
        self._known(name, body)
        if body.element is None or (force is None and torque is None):
            raise InputError(f"{name}: a wrench is a force or a torque on a body")
        if force is not None:
            law = force if callable(force) else _constant(array(f"{name}: force", force, (self.dimension,)))
            place = None if at is None else body.lever(point_in_space(name, at, self.dimension))
            self._act(name, loads.force(body.element, law, at=place, frame=frame))
        if torque is not None:
            law = torque if callable(torque) else _constant(np.atleast_1d(array(f"{name}: torque", torque)))
            self._act(name if force is None else f"{name} torque", loads.torque(body.element, law))

    def observe(self, name: str, expression: Callable[..., Any]) -> None:
        """A quantity of your own: a function of q and v of the whole system, shown as ``run[name]``."""
        self._observed[name] = expression

    def _act(self, name: str, element: Element) -> Element:
        self._new(name)
        element.name = name
        self._acting[name] = element
        return element

    def _end(self, name: str, given: Any) -> Any:
        """A point for springs and links: of a body, or of space."""
        if isinstance(given, Part):
            given = given.centre
        if isinstance(given, Marker) and given.part.element is not None:
            self._known(name, given.part)
            return given.part.element, given.lever
        return point_in_space(name, given, self.dimension)

    def _drawn_length(self, first: Any, second: Any, length: float | None) -> float:
        if length is not None:
            return length
        ends = [x.centre if isinstance(x, Part) else x for x in (first, second)]
        a, b = (point_in_space("a spring", x, self.dimension) for x in ends)
        return float(np.linalg.norm(a - b))

    def _known(self, name: str, part: Any) -> None:
        if not isinstance(part, Part) or (part is not self.ground and self.bodies.get(part.name) is not part):
            raise InputError(f"{name}: {part!r} is no body of this mechanism, nor its ground")

    def _needs(self, name: str, joint: Any, what: str) -> None:
        if not isinstance(joint, Joint) or self.joints.get(joint.name) is not joint:
            raise InputError(f"{name}: {joint!r} is no joint of this mechanism")
        if not getattr(joint.kind, what):
            verb = "turn" if what == "angle" else "slide"
            raise InputError(f"{name}: the {joint.what} joint '{joint.name}' does not {verb} about one axis")

    # -- start --------------------------------------------------------------------------------------------------------
    def start(self, what: Joint | Part, *, hold: bool = True, **targets: Any) -> None:
        """What is known of the start: ``angle``, ``rate``, ``position``, ``speed`` of a joint, or ``position``,
        ``velocity``, ``omega`` of a body.

        Held targets are met, or it is an error; others as well as they can.
        """
        known = {"angle", "rate", "position", "speed"} if isinstance(what, Joint) else {"position", "velocity", "omega"}
        for name, value in targets.items():
            if name not in known:
                raise InputError(f"{what.name}: a start has no '{name}'{suggestion(name, known)}")
            if isinstance(what, Joint):
                self._needs(f"start of {what.name}", what, "angle" if name in ("angle", "rate") else "slide")
            values = array(f"{what.name}: {name}", value)
            if name == "angle" and abs(float(values)) > _MOST_RADIANS:
                raise InputError(
                    f"{what.name}: an angle of {float(values):g} rad? In degrees it is written {value}*lv.deg"
                )
            self._targets.append(Target(what, name, np.atleast_1d(values), hold))
        self.__dict__.pop("_made", None)

    @functools.cached_property
    def _made(self) -> tuple[System, Assembly]:
        system = self._system()
        return system, Assembly(system, list(self.bodies.values()), list(self._targets))

    def _system(self) -> System:
        parts = list(self.bodies.values())
        if not parts:
            raise InputError("a mechanism needs at least one body")
        owned = [part.element for part in parts if part.element is not None]
        elements: list[Element] = [*owned, *(joint.element for joint in self.joints.values()), *self._acting.values()]
        shared = {}
        if self.gravity is not None:
            shared["gravity"] = self.gravity
            elements += [_weight(body) for body in owned]
        # watched wherever nothing breaks them, such as the ground
        momenta = dict(linear_momentum=linear_momentum(owned), angular_momentum=angular_momentum(owned))
        system = System(coordinates(owned), elements=elements, parameters=shared, symmetries=momenta, frames=True)
        system.redundant = self.redundant
        system.quantities = quantities(system, parts, list(self.joints.values()), self._links, self._observed)
        return system

    @property
    def system(self) -> System:
        """The mechanism as a system of elements."""
        return self._made[0]

    @property
    def elements(self) -> tuple[Element, ...]:
        return self.system.elements

    @property
    def assembled(self) -> Assembly:
        """Positions and velocities that meet joints and targets, and how."""
        return self._made[1]

    def check(self) -> Report:
        """Mobility, redundancy and assembly, before anything is compiled."""
        return report(self.system, self.assembled, self.joints)

    def problem(
        self, name: str = "mechanism", *, h: float = 1e-3, t_end: float = 1.0, scheme: str = "lie-em", **more: Any
    ) -> Problem:
        """The mechanism as a problem, assembled."""
        q, v = self.assembled.state
        return Problem(name, self.system, q, v, scheme, h, t_end, **more)

    @classmethod
    def attach(cls, name: str, value: Any) -> None:
        """Add a method from a later room, under a name that `livens.MULTIBODY_ACCESSORS` has."""
        setattr(cls, name, with_words(value, f"Multibody.{name}") if isinstance(value, FunctionType) else value)

    def __getattr__(self, name: str) -> Any:
        """What later rooms attach, such as `simulate`, is attached when they are imported."""
        if name in livens.MULTIBODY_ACCESSORS and name not in vars(type(self)):
            importlib.import_module(f"livens.{livens.MULTIBODY_ACCESSORS[name]}")
            return getattr(self, name)
        raise AttributeError(f"a Multibody has no '{name}'{suggestion(name, dir(type(self)))}")

    def __repr__(self) -> str:
        return f"<livens.Multibody: {len(self.bodies)} bodies, {len(self.joints)} joints>"


def _weight(body: Body) -> Element:
    """As `livens.bodies.gravity`, with the gravity of the whole mechanism."""
    centre = Point((body, body.centre))
    parameters = dict(mass=same_as(body, "mass"), X=centre.lever)
    name = f"weight of {body.name}"
    return Element(centre.coordinates, potential=loads.weight(centre.placement), parameters=parameters, name=name)


@functools.lru_cache(maxsize=256)
def _same(values: tuple[float, ...], scalar: bool) -> Callable[..., Any]:
    return lambda *_: values[0] if scalar else m.array(list(values))


def _constant(value: Any) -> Callable[..., Any]:
    """A law that always says the same; equal ones are one function, so that elements share their code."""
    return _same(tuple(np.atleast_1d(value).tolist()), np.ndim(value) == 0)


def _crossed(name: str, axis: Any, other: Any) -> np.ndarray:
    """Axes of a universal joint: the first is that of the first part, the second that of the second."""
    if axis is None or other is None:
        raise InputError(f"{name}: a universal joint needs axis (of the first part) and other_axis (of the second)")
    first, second = direction(f"{name}: axis", axis), direction(f"{name}: other_axis", other)
    if abs(first @ second) > 1e-9:
        raise InputError(f"{name}: the two axes of a universal joint must be normal to each other")
    return np.column_stack([first, second, np.cross(first, second)])
