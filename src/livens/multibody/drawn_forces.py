"""Builder methods for force elements: springs, dampers, bushings, cables, motors, drives, limits, friction, loads."""

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
    """Methods of `livens.Multibody` that add force elements."""

    def spring(self, name: str, first: Any, second: Any, *, stiffness: float, length: float | None = None) -> Element:
        """Add a linear spring between two points.

        Results: ``name.tension`` (N, positive in tension) and ``name.length`` (m).

        Parameters
        ----------
        name : str
            Name of the spring.
        point_a, point_b : Marker, Body or array_like
            Points: of a body (a body stands for its centre of mass), or fixed in space. At least one belongs to a body.
        stiffness : float
            Stiffness in N/m.
        free_length : float, optional
            Free length in m. By default the distance in the reference configuration.

        Returns
        -------
        Element
            Force element.

        Examples
        --------
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
        """Add a linear damper between two points, along the line through them.

        The result is ``name.tension`` in N.

        Parameters
        ----------
        name : str
            Name of the damper.
        point_a, point_b : Marker, Body or array_like
            Points: of a body (a body stands for its centre of mass), or fixed in space. At least one belongs to a body.
        damping : float
            Damping coefficient in N s/m.

        Returns
        -------
        Element
            Force element.
        """
        ends = self._ends(name, first, second)
        element = self._act(name, forces.damper(*ends, viscosity), "damper", first, second)
        self._exerting.append((name, Line(element, self._seen(first), self._seen(second))))
        return element

    def spring_damper(
        self, name: str, first: Any, second: Any, *, stiffness: float, viscosity: float, length: float | None = None
    ) -> tuple[Element, Element]:
        """Add a linear spring and a damper between two points; the damper is called ``name damper``.

        Parameters
        ----------
        name : str
            Name of the spring.
        point_a, point_b : Marker, Body or array_like
            Points: of a body (a body stands for its centre of mass), or fixed in space. At least one belongs to a body.
        stiffness : float
            Stiffness in N/m.
        damping : float
            Damping coefficient in N s/m.
        free_length : float, optional
            Free length in m. By default the distance in the reference configuration.

        Returns
        -------
        tuple of (Element, Element)
            Spring and damper.
        """
        not_negative(f"{name}: the damping", viscosity)  # before the spring is added
        spring = self.spring(name, first, second, stiffness=stiffness, length=length)
        return spring, self.damper(f"{name} damper", first, second, viscosity=viscosity)

    def gravitation(self, name: str, first: Part, second: Part, *, constant: float = forces.GRAVITATION) -> Element:
        """Add Newtonian gravitation between two bodies, with their masses at their centres.

        The result is ``name.force`` (N) on the second body, in space.

        Parameters
        ----------
        name : str
            Name of the force.
        body_a, body_b : Body
            Bodies; not the ground.
        constant : float, default 6.6743e-11
            Gravitational constant in m^3/(kg s^2).

        Returns
        -------
        Element
            Force element.
        """
        self._between(name, first, second)
        if first.element is None or second.element is None:
            raise InputError(f"{name}: gravitation needs two bodies; the ground has no mass")
        element = self._act(name, forces.gravitation(first.element, second.element, constant))
        self._exerting.append((name, OnPart(element, second, np.zeros(self.dimension), ("force",))))
        return element

    def torsion_spring(self, name: str, joint: Joint, *, stiffness: float, rest: float = 0.0) -> Element:
        """Add a torsion spring in a joint, with the angle within half a turn of the rest angle.

        The result is ``name.torque`` in N m.

        Parameters
        ----------
        name : str
            Name of the spring.
        joint : Joint
            Joint with an angle.
        stiffness : float
            Stiffness in N m/rad.
        rest_angle : float, default 0
            Rest angle in rad.

        Returns
        -------
        Element
            Force element.
        """
        given = dict(stiffness=not_negative(f"{name}: the stiffness", stiffness), rest=number(f"{name}: rest", rest))
        self._needs(name, joint, "angle")
        element = joint.acting(name, given, potential=actuators.torsion(joint.a, joint.b))
        return self._in(joint, True, self._act(name, element, "torsion_spring", joint))

    def torsion_damper(self, name: str, joint: Joint, *, viscosity: float) -> Element:
        """Add a torsion damper in a joint.

        The result is ``name.torque`` in N m.

        Parameters
        ----------
        name : str
            Name of the damper.
        joint : Joint
            Joint with an angle.
        damping : float
            Damping coefficient in N m s/rad.

        Returns
        -------
        Element
            Force element.
        """
        given = dict(viscosity=not_negative(f"{name}: the damping", viscosity))
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
        """Add a motor in a joint: a torque or a force, given as a function of time and of the joint state.

        The result is ``name.torque`` (N m) about the joint axis, or ``name.force`` (N) along it, on the second body.

        Parameters
        ----------
        joint : Joint
            Joint with an angle (`torque`) or a displacement (`force`).
        torque : float or callable, optional
            Torque in N m: a number or ``law(t, angle, rate)``, with parameters ``law(t, angle, rate, k)``. The angle is
            within half a turn of the reference configuration.
        force : float or callable, optional
            Force in N: a number or ``law(t, position, velocity)``, with parameters ``law(t, position, velocity, k)``.
        parameters : mapping of str to float, optional
            Parameters of the law.
        name : str, optional
            Name of the motor; by default that of the joint, followed by "motor".

        Returns
        -------
        Element
            Force element.

        Raises
        ------
        InputError
            Unless exactly one of `torque` and `force` is given, and the joint has that coordinate.
        """
        if (torque is None) == (force is None):
            raise InputError("a motor needs either a torque or a force")
        name = name or self._after(joint, "motor")
        self._needs(name, joint, "angle" if torque is not None else "slide")
        given = torque if torque is not None else force
        law = given if callable(given) else constant(number(f"{name}: the law", given))
        acting = actuators.motor(joint.a, joint.b, law, bool(parameters), torque is not None)
        element = self._act(name, joint.acting(name, dict(parameters or {}), forces=acting), "motor", joint)
        return self._in(joint, torque is not None, element)

    def _in(self, joint: Joint, turns: bool, element: Element) -> Element:
        """Register the output of a force element in a joint."""
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
        """Prescribe the motion of a joint by a rheonomic constraint.

        The result is the drive torque ``name.torque`` (N m) or force ``name.force`` (N) on the second body.

        Parameters
        ----------
        joint : Joint
            Driven joint.
        angle, position : float or callable, optional
            Angle in rad or displacement in m: a constant or a function of time.
        rate, velocity : float or callable, optional
            Angular rate in rad/s or sliding velocity in m/s: a constant or a function of time.
        name : str, optional
            Name of the drive; by default that of the joint, followed by "drive".

        Returns
        -------
        Element
            Constraint element.

        Raises
        ------
        InputError
            Unless exactly one motion is given, and the joint has that coordinate.
        """
        given = {
            k: law for k, law in dict(angle=angle, position=position, rate=rate, speed=speed).items() if law is not None
        }
        if len(given) != 1:
            raise InputError("a drive needs exactly one of angle, position, rate and velocity")
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
        """Limit the range of a joint.

        Beyond the limits a spring pushes the joint back (soft stop). With `restitution`, the joint bounces (hard stop).
        The result is ``name.torque`` (N m), or ``name.force`` (N) for sliding joints.

        Parameters
        ----------
        name : str
            Name of the limit.
        joint : Joint
            Joint with one rotation or one translation.
        lower, upper : float, optional
            Limits in rad or m, measured from the reference configuration. For rotations both are required and must be
            less than one turn apart.
        stiffness : float
            Spring stiffness beyond the limits, in N m/rad or N/m.
        damping : float, default 0
            Hunt-Crossley damping in N m s/rad^2 or N s/m^2: the damping force is ``damping * penetration * rate``.
        restitution : float, optional
            Coefficient of restitution of a hard stop, between 0 and 1. The impact changes the velocities of all bodies.
            When the bounces become shorter than a few steps, the joint comes to rest on the spring.

        Returns
        -------
        Element
            Force element.

        Raises
        ------
        InputError
            If a limit is missing, the range is empty or a full turn, or `restitution` is not between 0 and 1.
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
            raise InputError(f"{name}: lower must be below upper, for an angle by less than one turn")
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
        """Add dry friction in a joint: Stribeck friction, regularised at low rates; it never supplies energy.

        The result is ``name.torque`` in N m or ``name.force`` in N.

        Parameters
        ----------
        name : str
            Name of the friction.
        joint : Joint
            Joint with an angle (`torque`) or a displacement (`force`).
        torque : float, optional
            Kinetic friction torque in N m.
        force : float, optional
            Kinetic friction force in N.
        static : float, optional
            Static friction level in N m or N, if it is higher than the kinetic level.
        stribeck : float, default 0.1
            Stribeck rate in rad/s or m/s, at which half of the difference of static and kinetic level remains.
        rate_tolerance : float, default 1e-3
            Regularisation rate in rad/s or m/s; smaller than `stribeck`.

        Returns
        -------
        Element
            Force element.

        Raises
        ------
        InputError
            Unless exactly one of `torque` and `force` is given, and `stribeck` exceeds `rate_tolerance`.
        """
        if (torque is None) == (force is None):
            raise InputError(f"{name}: friction needs either a torque or a force")
        turns = torque is not None
        self._needs(name, joint, "angle" if turns else "slide")
        level = not_negative(f"{name}: the level", torque if turns else force)
        rest = level if static is None else not_negative(f"{name}: static", static)
        rates = dict(stribeck=positive(f"{name}: stribeck", stribeck), smooth=positive(f"{name}: smooth", smooth))
        if rates["stribeck"] <= rates["smooth"]:
            raise InputError(f"{name}: stribeck must be greater than rate_tolerance")
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
        """Add a bushing: an elastic connection of two bodies in all six directions.

        The bushing is unloaded in the reference configuration. Displacements are resolved in the first body. Rotations
        enter as ``2 tan(angle/2)`` about their axis. Results: ``name.force`` (N) and ``name.torque`` (N m, about its
        point) on the second body, in space.

        Parameters
        ----------
        name : str
            Name of the bushing.
        body_a, body_b : Body
            Bodies with orientation, one of them possibly the ground.
        stiffness : array_like of shape (6,) or (6, 6)
            Stiffness along the axes (N/m) and about them (N m/rad), or a symmetric matrix.
        damping : array_like of shape (6,) or (6, 6), optional
            Damping along the axes (N s/m) and about them (N m s/rad), or a symmetric matrix.
        at : array_like of shape (3,) or Marker, optional
            Position in the reference configuration, in m. By default the centre of the second body.
        at_second : array_like of shape (3,) or Marker, optional
            Position on the second body, if it differs from `at`.
        axes : array_like of shape (3, 3), optional
            Axes of the bushing as orthonormal columns; by default the global axes.

        Returns
        -------
        Element
            Force element.

        Raises
        ------
        InputError
            If the model is planar, a body is a particle, or a matrix is not symmetric and positive semidefinite.
        """
        self._new(name)
        self._between(name, first, second)
        if self.dimension != 3 or not (first.turns and second.turns):
            raise InputError(f"{name}: a bushing needs two bodies with orientation, in a spatial model")
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
        """Add a cable from the first point to the last; it slides over the points between without friction.

        The cable is in tension if it is longer than its free length, and never pushes. Results: ``name.tension`` (N)
        and ``name.length`` (m).

        Parameters
        ----------
        name : str
            Name of the cable.
        *points : Marker, Body or array_like
            At least two points of bodies or of space.
        stiffness : float
            Stiffness in N/m.
        free_length : float, optional
            Free length in m. By default the length in the reference configuration.
        damping : float, default 0
            Damping coefficient in N s/m, active while the cable is taut.

        Returns
        -------
        Element
            Force element.

        Raises
        ------
        InputError
            If there are fewer than two points, or no point belongs to a body.
        """
        if len(points) < 2:
            raise InputError(f"{name}: a cable needs at least two points")
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
        """Apply a force at a point and a torque to a body, constant or as functions of time.

        Results: ``name.force`` (N) and ``name.torque`` (N m), in space.

        Parameters
        ----------
        name : str
            Name of the load.
        body : Body
            Loaded body.
        force : array_like or callable, optional
            Force in N, or a function of time.
        torque : array_like, float or callable, optional
            Torque in N m with components in space, or a function of time; one number in the plane.
        at : array_like or Marker, optional
            Point of application in the reference configuration, in m; by default the centre of mass.
        frame : {"space", "body"}, default "space"
            Axes of the components of the force.

        Raises
        ------
        InputError
            If neither force nor torque is given, or the body is the ground.
        """
        self._known(name, body)
        if body.element is None or (force is None and torque is None):
            raise InputError(f"{name}: a wrench needs a force or a torque on a body")
        made: dict[str, Element] = {}  # both elements are checked before one is added
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
        """Define a user output: a function of the coordinates and velocities of the system.

        Parameters
        ----------
        name : str
            Name of the output, shown as ``run[name]``.
        expression : callable
            Function of q and v, written with `livens.math`.
        """
        self._new(name)
        if not callable(expression):
            raise InputError(f"{name}: an observed quantity must be a function of q and v, got {expression!r}")
        self._observed[name] = expression


def _six(what: str, given: Any) -> np.ndarray:
    """Return a symmetric positive semidefinite 6x6 matrix from six diagonal entries or a matrix."""
    values = array(what, given)
    matrix = np.diag(values) if values.shape == (6,) else values
    if matrix.shape != (6, 6) or np.abs(matrix - matrix.T).max() > 1e-9 * np.abs(matrix).max():
        raise InputError(f"{what} must be six numbers or a symmetric 6x6 matrix, got shape {values.shape}")
    if np.linalg.eigvalsh(matrix)[0] < -1e-9 * np.abs(matrix).max():
        raise InputError(f"{what} must be positive semidefinite")
    return np.asarray(matrix)


@functools.lru_cache(maxsize=256)
def _same(values: tuple[float, ...], scalar: bool) -> Callable[..., Any]:
    return lambda *_: values[0] if scalar else m.array(list(values))


def constant(value: Any) -> Callable[..., Any]:
    """Return a constant law; equal values share one function, so that elements share their code."""
    return _same(tuple(np.atleast_1d(value).tolist()), np.ndim(value) == 0)
