"""Forces of a drawing: springs, dampers, motors, drives, loads."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import array, not_negative, number, positive
from livens.models.element import Element
from livens.multibody import actuators, bushings, forces, loads
from livens.multibody.bodies import Point
from livens.multibody.drawing import Drawing
from livens.multibody.exerting import InJoint, Line, OnPart, Rope
from livens.multibody.joint import Joint
from livens.multibody.parts import Part, point_in_space
from livens.multibody.stops import DrawnStop


class DrawnForces(Drawing):
    """The methods of `livens.Multibody` that let forces act."""

    def spring(self, name: str, first: Any, second: Any, *, stiffness: float, length: float | None = None) -> Element:
        """A spring between two points; relaxed as it is drawn, unless a length is given.

        By name there are ``name.tension``, positive where it pulls, and ``name.length``.

        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> ball = mb.particle("ball", at=[0, 0, -1], mass=2.0)
        >>> coil = mb.spring("coil", [0, 0, 0], ball, stiffness=100.0)
        >>> rest = mb.equilibrium()
        >>> round(float(mb.simulate(t_end=0.1, h=0.01)["coil.tension"][-1]), 9)
        19.62
        """
        ends, natural = self._ends(name, first, second), self._drawn_length(first, second, length)
        rate = not_negative(f"{name}: the stiffness", stiffness)
        element = self._act(name, forces.spring(*ends, rate, natural), "spring", first, second)
        self._exerting.append((name, Line(element, self._seen(first), self._seen(second))))
        return element

    def damper(self, name: str, first: Any, second: Any, *, viscosity: float) -> Element:
        """A damper between two points, along the line through both; by name there is ``name.tension``."""
        ends = self._ends(name, first, second)
        element = self._act(name, forces.damper(*ends, viscosity), "damper", first, second)
        self._exerting.append((name, Line(element, self._seen(first), self._seen(second))))
        return element

    def spring_damper(
        self, name: str, first: Any, second: Any, *, stiffness: float, viscosity: float, length: float | None = None
    ) -> tuple[Element, Element]:
        """Both between the same two points; the damper is called ``name damper``."""
        not_negative(f"{name}: the viscosity", viscosity)  # before anything is drawn
        spring = self.spring(name, first, second, stiffness=stiffness, length=length)
        return spring, self.damper(f"{name} damper", first, second, viscosity=viscosity)

    def gravitation(self, name: str, first: Part, second: Part, *, constant: float = forces.GRAVITATION) -> Element:
        """Two bodies attract each other as their masses would at their centres; SI units unless a constant is given.

        What acts on the second body is ``name.force``.
        """
        self._between(name, first, second)
        if first.element is None or second.element is None:
            raise InputError(f"{name}: two bodies attract each other; the ground has no mass")
        element = self._act(name, forces.gravitation(first.element, second.element, constant))
        self._exerting.append((name, OnPart(element, second, np.zeros(self.dimension), ("force",))))
        return element

    def torsion_spring(self, name: str, joint: Joint, *, stiffness: float, rest: float = 0.0) -> Element:
        """A spring against the angle of a joint, within half a turn of its rest; it exerts ``name.torque``."""
        given = dict(stiffness=not_negative(f"{name}: the stiffness", stiffness), rest=number(f"{name}: rest", rest))
        self._needs(name, joint, "angle")
        element = joint.acting(name, given, potential=actuators.torsion(joint.a, joint.b))
        return self._in(joint, True, self._act(name, element, "torsion_spring", joint))

    def torsion_damper(self, name: str, joint: Joint, *, viscosity: float) -> Element:
        """A damper against the rate of a joint; it exerts ``name.torque``."""
        given = dict(viscosity=not_negative(f"{name}: the viscosity", viscosity))
        self._needs(name, joint, "angle")
        element = joint.acting(name, given, dissipation=actuators.turning_damper(joint.a, joint.b))
        return self._in(joint, True, self._act(name, element, "torsion_damper", joint))

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
        there are parameters. The angle is that within half a turn of the drawn pose. What it exerts on the second body,
        about the axis or along it, is ``name.torque`` or ``name.force``.
        """
        if (torque is None) == (force is None):
            raise InputError("a motor has either a torque or a force")
        name = name or self._after(joint, "motor")
        self._needs(name, joint, "angle" if torque is not None else "slide")
        given = torque if torque is not None else force
        law = given if callable(given) else constant(number(f"{name}: the law", given))
        acting = actuators.motor(joint.a, joint.b, law, bool(parameters), torque is not None)
        element = self._act(name, joint.acting(name, dict(parameters or {}), forces=acting), "motor", joint)
        return self._in(joint, torque is not None, element)

    def _in(self, joint: Joint, turns: bool, element: Element) -> Element:
        """It acts in a joint, and what it exerts there is shown by its name."""
        self._exerting.append((element.name, InJoint(element, joint, turns)))
        return element

    def drive(
        self,
        joint: Joint,
        *,
        angle: Any = None,
        position: Any = None,
        rate: Any = None,
        speed: Any = None,
        name: str = "",
    ) -> Element:
        """The angle or position of a joint, or its rate or speed, is a function of time (or a constant).

        What the drive has to exert on the second body for that is ``name.torque``, or ``name.force``.
        """
        given = {
            k: law for k, law in dict(angle=angle, position=position, rate=rate, speed=speed).items() if law is not None
        }
        if len(given) != 1:
            raise InputError("a drive is of an angle, a position, a rate or a speed, of one of them")
        ((what, law),) = given.items()
        name, turns = name or self._after(joint, "drive"), what in ("angle", "rate")
        self._needs(name, joint, "angle" if turns else "slide")
        law = law if callable(law) else constant(number(f"{name}: the law", law))
        if what in ("angle", "position"):
            make = actuators.drive if turns else actuators.shift
            functions: dict[str, Any] = dict(constraints=make(joint.a, joint.b, law))
        else:
            functions = dict(velocity_constraints=actuators.speed_drive(joint.a, joint.b, law, turns))
        element = self._act(name, joint.acting(name, {}, constraint_names=[what], **functions))
        self._drives.append((element, "N m" if turns else "N"))
        return element

    def limit(
        self,
        name: str,
        joint: Joint,
        *,
        lower: float | None = None,
        upper: float | None = None,
        stiffness: float,
        damping: float = 0.0,
        restitution: float | None = None,
    ) -> Element:
        """Ends of the way of a joint: a spring beyond them, with a damping that grows with the depth.

        Both ends of an angle must be given, less than a turn apart. With a `restitution` between 0 and 1 the joint is
        thrown back at an end with this part of its rate, by an impulse that all bodies feel. Where bounces would last
        less than a few steps it lands on the spring, which is there until the joint leaves the end.
        """
        turns = isinstance(joint, Joint) and joint.kind.angle
        self._needs(name, joint, "angle" if turns else "slide")
        if (lower is None and upper is None) or (turns and (lower is None or upper is None)):
            raise InputError(f"{name}: a limit needs {'both ends, lower and upper' if turns else 'lower or upper'}")
        given = {
            word: number(f"{name}: {word}", end)
            for word, end in dict(lower=lower, upper=upper).items()
            if end is not None
        }
        way = given.get("upper", np.inf) - given.get("lower", -np.inf)
        if not way > 0 or (turns and way >= 2 * np.pi):
            raise InputError(f"{name}: lower must be below upper, of an angle by less than a turn")
        sides = joint.a, joint.b, turns, tuple(given), restitution is not None
        given["stiffness"] = not_negative(f"{name}: the stiffness", stiffness)
        functions: dict[str, Any] = dict(potential=bushings.limited(*sides))
        if not_negative(f"{name}: the damping", damping):
            given["viscosity"] = float(damping)
            functions["dissipation"] = bushings.limit_damping(*sides)
        stops = []
        if restitution is not None:
            part = not_negative(f"{name}: the restitution", restitution)
            if part > 1:
                raise InputError(f"{name}: the restitution must be between 0 and 1, got {part:g}")
            ends = [
                (word, at, sign) for word, at, sign in (("lower", lower, -1.0), ("upper", upper, 1.0)) if at is not None
            ]
            stops = [DrawnStop(f"{name} {word}", joint, float(at), sign, part, name) for word, at, sign in ends]
            given["touching"] = 0.0
        element = self._act(name, joint.acting(name, given, **functions), "limit", joint)
        self._stops += stops
        return self._in(joint, turns, element)

    def friction(
        self,
        name: str,
        joint: Joint,
        *,
        torque: float | None = None,
        force: float | None = None,
        static: float | None = None,
        stribeck: float = 0.1,
        smooth: float = 1e-3,
    ) -> Element:
        """Dry friction in a joint, smooth below the rate `smooth`; `static` is its level at rest, if it is higher.

        By name there is ``name.torque`` or ``name.force``.

        `stribeck` is the rate at which half of what `static` is above the level has gone. It never gives energy.
        """
        if (torque is None) == (force is None):
            raise InputError(f"{name}: friction is either a torque or a force")
        turns = torque is not None
        self._needs(name, joint, "angle" if turns else "slide")
        level = not_negative(f"{name}: the level", torque if turns else force)
        rest = level if static is None else not_negative(f"{name}: static", static)
        rates = dict(stribeck=positive(f"{name}: stribeck", stribeck), smooth=positive(f"{name}: smooth", smooth))
        if rates["stribeck"] <= rates["smooth"]:
            raise InputError(f"{name}: stribeck must be greater than smooth")
        given = dict(level=level, static=rest, **rates)
        element = joint.acting(name, given, dissipation=bushings.friction(joint.a, joint.b, turns))
        return self._in(joint, turns, self._act(name, element, "friction", joint))

    def bushing(
        self,
        name: str,
        first: Part,
        second: Part,
        *,
        stiffness: Any,
        damping: Any = None,
        at: Any = None,
        to: Any = None,
        axes: Any = None,
    ) -> Element:
        """An elastic support between two bodies at a point: six stiffnesses along and about its axes, or a 6x6 matrix.

        The axes are those of space in the drawing, or the columns of `axes`; displacements are seen from the first
        body. It is relaxed as it is drawn. Rotations enter as 2 tan(angle/2) about their axis. What it exerts on the
        second body, in space, is ``name.force`` and about its point ``name.torque``.
        """
        self._new(name)
        self._between(name, first, second)
        if self.dimension != 3 or not (first.turns and second.turns):
            raise InputError(f"{name}: a bushing is between bodies in space that can turn")
        given = at if at is not None else (second if second.element else first).position
        place = point_in_space(f"{name}: at", given, 3)
        other = place if to is None else point_in_space(f"{name}: to", to, 3)
        R = np.eye(3) if axes is None else array(f"{name}: axes", axes, (3, 3))
        if np.abs(R.T @ R - np.eye(3)).max() > 1e-9:
            raise InputError(f"{name}: axes must have orthonormal columns")
        K = _six(f"{name}: stiffness", stiffness)
        parameters = dict(X=first.lever(place), Y=second.lever(other), A=first.inwards(R), B=second.inwards(R))
        a, b = first.placement, second.placement
        functions: dict[str, Any] = dict(potential=bushings.bushing(a, b))
        if damping is not None:
            parameters["viscosity"] = _six(f"{name}: damping", damping)
            functions["dissipation"] = bushings.bushing_damping(a, b)
        element = Element(
            [*first.coordinates, *second.coordinates], parameters=parameters | dict(stiffness=K), name=name, **functions
        )
        part, lever, sign = (second, "Y", 1) if second.element is not None else (first, "X", -1)
        self._act(name, element)
        self._exerting.append((name, OnPart(element, part, parameters[lever], ("force", "torque"), sign)))
        return element

    def cable(
        self, name: str, *points: Any, stiffness: float, length: float | None = None, damping: float = 0.0
    ) -> Element:
        """A cable from the first point to the last; it slides over those between them without friction.

        It pulls where it is longer than `length`, by default that of the drawing, and never pushes. By name there are
        ``name.tension`` and ``name.length``.
        """
        if len(points) < 2:
            raise InputError(f"{name}: a cable goes through at least two points")
        ends = [Point(self._end(name, one)) for one in points]
        names = list(dict.fromkeys(str(c) for end in ends for c in end.coordinates))
        if not names:
            raise InputError(f"{name}: one of the points must belong to a body")
        places = tuple(tuple(names.index(str(c)) for c in end.coordinates) for end in ends)
        placements = tuple(end.placement for end in ends)
        drawn = [point_in_space(name, x.centre if isinstance(x, Part) else x, self.dimension) for x in points]
        natural = sum(float(np.linalg.norm(y - x)) for x, y in itertools.pairwise(drawn))
        given: dict[str, Any] = {f"X{i}": end.lever for i, end in enumerate(ends)}
        given |= dict(
            stiffness=not_negative(f"{name}: the stiffness", stiffness),
            length=natural if length is None else not_negative(f"{name}: the length", length),
        )
        functions: dict[str, Any] = dict(potential=bushings.cable(placements, places))
        if not_negative(f"{name}: the damping", damping):
            given["viscosity"] = float(damping)
            functions["dissipation"] = bushings.cable_damping(placements, places)
        look = bushings.cable_look(placements, places)
        element = self._act(name, Element(names, parameters=given, name=name, look=look, **functions))
        tension = bushings.cable_tension(placements, places, damping > 0)
        self._exerting.append((name, Rope(element, bushings.cable_length(placements, places), tension)))
        return element

    def wrench(
        self, name: str, body: Part, *, force: Any = None, torque: Any = None, at: Any = None, frame: str = "space"
    ) -> None:
        """A force at a point (by default the centre) and a torque on a body: constant, or functions of time.

        The force has components in "space" or in the axes of the "body", the torque in space; both are shown in space,
        as ``name.force`` and ``name.torque``.
        """
        self._known(name, body)
        if body.element is None or (force is None and torque is None):
            raise InputError(f"{name}: a wrench is a force or a torque on a body")
        made: dict[str, Element] = {}  # both, before any of them is drawn
        if force is not None:
            law = force if callable(force) else constant(array(f"{name}: force", force, (self.dimension,)))
            place = None if at is None else body.lever(point_in_space(name, at, self.dimension))
            made["force"] = loads.force(body.element, law, at=place, frame=frame)
        if torque is not None:
            size = 1 if self.dimension == 2 else 3
            about = None if callable(torque) else np.atleast_1d(array(f"{name}: torque", torque))
            if about is not None and about.shape != (size,):
                raise InputError(f"{name}: torque must be {size} numbers, got {torque!r}")
            made["torque"] = loads.torque(body.element, torque if about is None else constant(about))
        for what, element in made.items():
            self._act(name if what == next(iter(made)) else f"{name} torque", element)
            self._exerting.append((name, OnPart(element, body, np.zeros(self.dimension), (what,))))

    def observe(self, name: str, expression: Callable[..., Any]) -> None:
        """A quantity of your own: a function of q and v of the whole system, shown as ``run[name]``."""
        self._new(name)
        if not callable(expression):
            raise InputError(f"{name}: what is observed must be a function of q and v, got {expression!r}")
        self._observed[name] = expression


def _six(what: str, given: Any) -> np.ndarray:
    """Six numbers as a diagonal matrix, or a symmetric one of six rows."""
    values = array(what, given)
    matrix = np.diag(values) if values.shape == (6,) else values
    if matrix.shape != (6, 6) or np.abs(matrix - matrix.T).max() > 1e-9 * np.abs(matrix).max():
        raise InputError(f"{what} must be six numbers or a symmetric 6x6 matrix, got shape {values.shape}")
    if np.linalg.eigvalsh(matrix)[0] < -1e-9 * np.abs(matrix).max():
        raise InputError(f"{what} must not be negative in any direction")
    return np.asarray(matrix)


@functools.lru_cache(maxsize=256)
def _same(values: tuple[float, ...], scalar: bool) -> Callable[..., Any]:
    return lambda *_: values[0] if scalar else m.array(list(values))


def constant(value: Any) -> Callable[..., Any]:
    """A law that always says the same; equal ones are one function, so that elements share their code."""
    return _same(tuple(np.atleast_1d(value).tolist()), np.ndim(value) == 0)
