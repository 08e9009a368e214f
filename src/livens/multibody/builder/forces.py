"""Builder methods for force elements: springs, dampers, bushings, cables, motors, drives, limits, friction, loads."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.models.element import Element
from livens.models.external_force import ExternalForce
from livens.multibody import bushings, force_laws, joint_forces, loads, point_forces
from livens.multibody.body import Body, MovingMarker, PointLike, parse_direction, parse_point
from livens.multibody.body_elements import AttachmentPoint
from livens.multibody.builder.base import ModelBase
from livens.multibody.force_outputs import BodyWrenchOutputs, CableOutputs, JointForceOutputs, PointToPointOutputs
from livens.multibody.inputs import (
    Input,
    Law,
    TimeLaw,
    check_joint_law,
    check_law,
    joint_law,
    named_law,
    symbols_of,
    time_law,
)
from livens.multibody.joint import Joint
from livens.multibody.joint_forces import ZERO_BRANCH
from livens.multibody.joint_stops import JointStop
from livens.multibody.wheel import Wheel
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_arguments, check_array, check_nonnegative, check_number, check_positive


class ForceMethods(ModelBase):
    """Methods of `livens.Multibody` that add force elements."""

    def spring(
        self,
        name: str,
        point_a: PointLike | Body,
        point_b: PointLike | Body,
        *,
        stiffness: float,
        free_length: float | None = None,
    ) -> Element:
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
        if isinstance(point_a, MovingMarker) or isinstance(point_b, MovingMarker):
            values = dict(
                stiffness=check_nonnegative(f"{name}: the stiffness", stiffness),
                length=check_nonnegative(f"{name}: the length", self._reference_length(point_a, point_b, free_length)),
            )
            return self.force_law(name, point_a, point_b, potential=_spring_energy, parameters=values)
        ends, checked_length = (
            self._attachments(name, point_a, point_b),
            self._reference_length(point_a, point_b, free_length),
        )
        checked_stiffness = check_nonnegative(f"{name}: the stiffness", stiffness)
        element = self._add_force_element(
            name, point_forces.spring(*ends, checked_stiffness, checked_length), "spring", point_a, point_b
        )
        self._force_outputs.append(
            (name, PointToPointOutputs(element, self._body_and_point(point_a), self._body_and_point(point_b)))
        )
        return element

    def damper(self, name: str, point_a: PointLike | Body, point_b: PointLike | Body, *, damping: float) -> Element:
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
        if isinstance(point_a, MovingMarker) or isinstance(point_b, MovingMarker):
            values = dict(viscosity=check_nonnegative(f"{name}: the damping", damping))
            return self.force_law(name, point_a, point_b, _damper_force, parameters=values)
        ends = self._attachments(name, point_a, point_b)
        element = self._add_force_element(name, point_forces.damper(*ends, damping), "damper", point_a, point_b)
        self._force_outputs.append(
            (name, PointToPointOutputs(element, self._body_and_point(point_a), self._body_and_point(point_b)))
        )
        return element

    def spring_damper(
        self,
        name: str,
        point_a: PointLike | Body,
        point_b: PointLike | Body,
        *,
        stiffness: float,
        damping: float,
        free_length: float | None = None,
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
        check_nonnegative(f"{name}: the damping", damping)  # before the spring is added
        spring = self.spring(name, point_a, point_b, stiffness=stiffness, free_length=free_length)
        return spring, self.damper(f"{name} damper", point_a, point_b, damping=damping)

    def marker(self, name: str, *, position: ModelFunction) -> MovingMarker:
        """Return a point in space that moves as a function of time, such as a point of a road or of a shaker.

        The marker can be an end of springs, dampers and force laws. Its motion supplies energy.

        Parameters
        ----------
        name : str
            Name of the marker.
        position : callable
            Position in m, a function of time with the shape of a point.

        Returns
        -------
        MovingMarker
            Moving marker.

        Raises
        ------
        InputError
            If `position` is not a function of time that returns a point.

        Examples
        --------
        >>> import livens as lv
        >>> from livens import math as m
        >>> mb = lv.Multibody()
        >>> wheel = mb.particle("wheel", at=[0, 0, 0.5], mass=1.0)
        >>> road = mb.marker("road", position=lambda t: [0, 0, 0.1 * m.sin(t)])
        >>> tyre = mb.spring("tyre", road, wheel, stiffness=1e4)
        """
        self._claim_name(name)
        if not callable(position):
            raise InputError(f"{name}: the position must be a function of time, got {position!r}; see body.point")
        law = time_law(f"{name}: the position", position, "command", (self.dimension,))
        return MovingMarker(name, lambda t: law.function(t, None))

    def force_law(
        self,
        name: str,
        point_a: Any,
        point_b: Any,
        force: ModelFunction | None = None,
        *,
        potential: ModelFunction | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
    ) -> Element:
        """Add a force between two points, along the line through them, by a law of their distance.

        Results: ``name.tension`` (N, positive in tension) and ``name.length`` (m). A force that depends on the length
        only conserves the energy exactly if it is given as `potential`.

        Parameters
        ----------
        name : str
            Name of the force.
        point_a, point_b : Marker, MovingMarker, Body or array_like
            Points: of a body (a body stands for its centre of mass), or in space. At least one belongs to a body.
        force : callable, optional
            Tension in N: a function of some of ``length``, ``rate``, ``t`` and ``k`` (the parameters).
        potential : callable, optional
            Potential energy in J: a function of ``length`` and ``k``. It adds to `force`.
        parameters : mapping of str to float, optional
            Parameters of the law.

        Returns
        -------
        Element
            Force element.

        Raises
        ------
        InputError
            If there is neither a force nor a potential, or a law has other arguments or no scalar value.

        Examples
        --------
        A spring that only pushes, and a damper of the square of the rate:

        >>> import livens as lv
        >>> from livens import math as m
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> ball = mb.particle("ball", at=[0, 0, 1], mass=1.0)
        >>> stop = mb.force_law(
        ...     "stop", ball, [0, 0, 0], lambda length, rate: -2.0 * rate * abs(rate),
        ...     potential=lambda length: 500 * m.maximum(1 - length, 0) ** 2,
        ... )
        >>> run = mb.simulate(t_end=0.1, h=1e-3)
        """
        if force is None and potential is None:
            raise InputError(f"{name}: a force law needs a force or a potential")
        law_parameters = dict(parameters or {})
        laws: dict[str, Any] = {}
        for role, law, arguments in (
            ("force", force, force_laws.FORCE_ARGUMENTS),
            ("potential", potential, force_laws.POTENTIAL_ARGUMENTS),
        ):
            if law is None:
                continue
            if not callable(law):
                raise InputError(f"{name}: the {role} must be a function, got {law!r}")
            check_law(f"{name}: the {role}", law, arguments, (), symbols_of(law_parameters))
            laws[role] = named_law(law, arguments)
        motion = tuple(x.position if isinstance(x, MovingMarker) else None for x in (point_a, point_b))
        ends = self._attachments(name, point_a, point_b, may_move=True)
        element = force_laws.point_force(*ends, **laws, motion=(motion[0], motion[1]), parameters=law_parameters)
        self._add_force_element(name, element, "force_law", point_a, point_b)
        sides = self._body_and_point(point_a), self._body_and_point(point_b)
        self._force_outputs.append((name, PointToPointOutputs(element, *sides, (motion[0], motion[1]))))
        return element

    def gravitation(
        self, name: str, body_a: Body, body_b: Body, *, constant: float = point_forces.GRAVITATION
    ) -> Element:
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
        self._check_body_pair(name, body_a, body_b)
        if body_a.element is None or body_b.element is None:
            raise InputError(f"{name}: gravitation needs two bodies; the ground has no mass")
        element = self._add_force_element(name, point_forces.gravitation(body_a.element, body_b.element, constant))
        self._force_outputs.append((name, BodyWrenchOutputs(element, body_b, np.zeros(self.dimension), ("force",))))
        return element

    def torsion_spring(self, name: str, joint: Joint, *, stiffness: float, rest_angle: float = 0.0) -> Element:
        """Add a torsion spring in a joint; its angle is continuous over any number of revolutions.

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
        parameters = dict(
            stiffness=check_nonnegative(f"{name}: the stiffness", stiffness),
            rest=check_number(f"{name}: rest", rest_angle),
            angle_branch=ZERO_BRANCH,
        )
        self._require_coordinate(name, joint, "angle")
        element = joint.force_element(
            name, parameters, potential=joint_forces.torsion_spring_potential(joint.a, joint.b)
        )
        return self._register_joint_output(joint, True, self._add_force_element(name, element, "torsion_spring", joint))

    def torsion_damper(self, name: str, joint: Joint, *, damping: float) -> Element:
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
        parameters = dict(viscosity=check_nonnegative(f"{name}: the damping", damping))
        self._require_coordinate(name, joint, "angle")
        element = joint.force_element(name, parameters, dissipation=joint_forces.torsion_damper(joint.a, joint.b))
        return self._register_joint_output(joint, True, self._add_force_element(name, element, "torsion_damper", joint))

    def motor(
        self,
        joint: Joint,
        *,
        torque: ModelFunction | float | Input | None = None,
        force: ModelFunction | float | Input | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        name: str = "",
    ) -> Element:
        """Add a motor in a joint: a torque or a force, given as a function of time and of the joint state.

        The result is ``name.torque`` (N m) about the joint axis, or ``name.force`` (N) along it, on the second body.

        Parameters
        ----------
        joint : Joint
            Joint with an angle (`torque`) or a displacement (`force`).
        torque : float or callable, optional
            Torque in N m: a number, an `input`, or a function of some of ``t``, ``angle``, ``rate`` and ``k`` (the
            parameters). The angle is continuous over revolutions and zero in the reference configuration.
        force : float or callable, optional
            Force in N: a number, an `input`, or a function of some of ``t``, ``position``, ``velocity`` and ``k``.
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
        name, rotational = name or self._default_name(joint, "motor"), torque is not None
        self._require_coordinate(name, joint, "angle" if rotational else "slide")
        value, law_parameters = torque if rotational else force, dict(parameters or {})
        inputs, uses_angle = dict[str, Input](), False
        if callable(value):
            law = joint_law(value, bool(law_parameters))
            uses_angle = check_joint_law(f"{name}: the law", value, law_parameters) and rotational
        else:
            timed = time_law(f"{name}: the law", value, "command")
            law, inputs, law_parameters = _time_only(timed.function), timed.inputs, law_parameters | timed.parameters
        if uses_angle:
            law_parameters["angle_branch"] = ZERO_BRANCH
        motor_forces = joint_forces.motor(joint.a, joint.b, law, rotational)
        element = self._add_force_element(
            name, joint.force_element(name, law_parameters, forces=motor_forces), "motor", joint
        )
        self._register_inputs(element, inputs)
        return self._register_joint_output(joint, rotational, element)

    def _register_inputs(self, element: Element, inputs: Mapping[str, Input]) -> None:
        """Register the inputs that a new element reads."""
        for parameter, declared in inputs.items():
            declared.uses.append((element, parameter))

    def input(self, name: str, value: object = 0.0) -> Input:
        """Declare an input: a torque, force or motion that is set from outside during a run.

        Pass the input to motors, drives, wrenches and controllers in place of a number or of a function of time. Set
        it by ``step.step(state, inputs={name: value})``, or for a whole run by ``simulate(inputs={name: values})``.

        Parameters
        ----------
        name : str
            Name of the input.
        value : float or array_like, default 0
            Value before the first change, in the unit of its use; its shape is that of the input.

        Returns
        -------
        Input
            Input, to be passed to force elements.

        Raises
        ------
        InputError
            If the name is in use, or `value` is not finite.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
        >>> shoulder = mb.revolute("shoulder", mb.ground, arm, at=arm.a, axis="y")
        >>> drive = mb.motor(shoulder, torque=mb.input("torque"))
        >>> step = lv.prepare(mb.problem("arm", h=0.01, t_end=1.0))
        >>> state = step.start()
        >>> for _ in range(10):
        ...     state = step.step(state, inputs={"torque": -4.905})  # the weight of the arm
        >>> bool(abs(state.v).max() < 1e-12)
        True
        """
        self._claim_name(name)
        declared = self._inputs[name] = Input(name, check_array(f"{name}: the value", value))
        return declared

    def _register_joint_output(self, joint: Joint, rotational: bool, element: Element) -> Element:
        """Register the output of a force element in a joint, and the branch of its angle."""
        if "angle_branch" in element.parameters.values:
            self._angle_branches.append((joint, element, "angle_branch"))
        self._force_outputs.append((element.name, JointForceOutputs(element, joint, rotational)))
        return element

    def drive(
        self,
        joint: Joint,
        *,
        angle: object = None,
        position: object = None,
        rate: object = None,
        velocity: object = None,
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
        laws = {
            k: law
            for k, law in dict(angle=angle, position=position, rate=rate, speed=velocity).items()
            if law is not None
        }
        if len(laws) != 1:
            raise InputError("a drive needs exactly one of angle, position, rate and velocity")
        ((quantity, law),) = laws.items()
        name, rotational = name or self._default_name(joint, "drive"), quantity in ("angle", "rate")
        self._require_coordinate(name, joint, "angle" if rotational else "slide")
        timed = time_law(f"{name}: the law", law, "command")
        law = timed.function
        if quantity in ("angle", "position"):
            constraint = joint_forces.angle_drive if rotational else joint_forces.displacement_drive
            functions: dict[str, Any] = dict(constraints=constraint(joint.a, joint.b, law))
        else:
            functions = dict(velocity_constraints=joint_forces.rate_drive(joint.a, joint.b, law, rotational))
        element = self._add_force_element(
            name, joint.force_element(name, timed.parameters, constraint_names=[quantity], **functions)
        )
        self._register_inputs(element, timed.inputs)
        self._drives.append((element, "N m" if rotational else "N"))
        return element

    def limit(
        self,
        name: str,
        joint: Joint,
        *,
        lower: float | None = None,
        upper: float | None = None,
        stiffness: float | None = None,
        damping: float = 0.0,
        restitution: float | None = None,
    ) -> Element | list[JointStop]:
        """Limit the range of a joint.

        Beyond the limits a spring pushes the joint back (soft stop). With `restitution`, the stop is rigid: the joint
        bounces, and rests on the stop without penetration (hard stop). The result is ``name.torque`` (N m), or
        ``name.force`` (N) for sliding joints.

        Parameters
        ----------
        name : str
            Name of the limit.
        joint : Joint
            Joint with one rotation or one translation.
        lower, upper : float, optional
            Limits in rad or m, measured from the reference configuration. Angles are continuous over revolutions.
        stiffness : float, optional
            Spring stiffness beyond the limits, in N m/rad or N/m. Required without `restitution`; a hard stop is rigid
            and does not use it.
        damping : float, default 0
            Hunt-Crossley damping in N m s/rad^2 or N s/m^2: the damping force is ``damping * penetration * rate``. A
            hard stop does not use it.
        restitution : float, optional
            Coefficient of restitution of a hard stop, between 0 and 1. The impact changes the velocities of all bodies.
            When the next bounce would last less than a thousandth of a step, the stop closes: it holds the joint by a
            constraint until the joint leaves it.

        Returns
        -------
        Element or list of JointStop
            Force element of a soft stop; with `restitution`, one rigid stop for each given limit.

        Raises
        ------
        InputError
            If no limit is given, the range is empty, or `restitution` is not between 0 and 1.
        """
        rotational = isinstance(joint, Joint) and joint.joint_type.angle
        self._require_coordinate(name, joint, "angle" if rotational else "slide")
        if lower is None and upper is None:
            raise InputError(f"{name}: a limit needs lower or upper")
        parameters: dict[str, Any] = {
            side: check_number(f"{name}: {side}", limit)
            for side, limit in dict(lower=lower, upper=upper).items()
            if limit is not None
        }
        range_ = parameters.get("upper", np.inf) - parameters.get("lower", -np.inf)
        if not range_ > 0:
            raise InputError(f"{name}: lower must be below upper")
        viscosity = check_nonnegative(f"{name}: the damping", damping)
        if stiffness is not None:
            check_nonnegative(f"{name}: the stiffness", stiffness)
        if restitution is not None:
            coefficient = check_nonnegative(f"{name}: the restitution", restitution)
            if coefficient > 1:
                raise InputError(f"{name}: the restitution must be between 0 and 1, got {coefficient:g}")
            return self._add_joint_stops(name, joint, rotational, parameters, coefficient)
        if stiffness is None:
            raise InputError(f"{name}: a limit needs a stiffness (soft stop) or a restitution (hard stop)")
        arguments = joint.a, joint.b, rotational, tuple(parameters)
        parameters["stiffness"] = float(stiffness)
        if rotational:
            parameters["angle_branch"] = ZERO_BRANCH
        functions: dict[str, Any] = dict(potential=bushings.limit_potential(*arguments))
        if viscosity:
            parameters["viscosity"] = viscosity
            functions["dissipation"] = bushings.limit_dissipation(*arguments)
        element = self._add_force_element(name, joint.force_element(name, parameters, **functions), "limit", joint)
        return self._register_joint_output(joint, rotational, element)

    def _add_joint_stops(
        self, name: str, joint: Joint, rotational: bool, limits: Mapping[str, float], restitution: float
    ) -> list[JointStop]:
        """Add one rigid stop for each limit of a joint."""
        self._claim_name(name)
        stops = [
            JointStop(name, joint, rotational, limit, 1.0 if side == "upper" else -1.0, restitution)
            for side, limit in limits.items()
        ]
        self._joint_stops[name] = stops
        if rotational:
            self._angle_branches += [(joint, stop.element, "angle_branch") for stop in stops if stop.element]
        return stops

    def friction(
        self,
        name: str,
        joint: Joint,
        *,
        torque: float | None = None,
        force: float | None = None,
        static: float | None = None,
        stribeck: float = 0.1,
        rate_tolerance: float = 1e-3,
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
        rotational = torque is not None
        self._require_coordinate(name, joint, "angle" if rotational else "slide")
        kinetic = check_nonnegative(f"{name}: the level", torque if rotational else force)
        static_level = kinetic if static is None else check_nonnegative(f"{name}: static", static)
        rates = dict(
            stribeck=check_positive(f"{name}: stribeck", stribeck),
            smooth=check_positive(f"{name}: smooth", rate_tolerance),
        )
        if rates["stribeck"] <= rates["smooth"]:
            raise InputError(f"{name}: stribeck must be greater than rate_tolerance")
        parameters = dict(level=kinetic, static=static_level, **rates)
        element = joint.force_element(
            name, parameters, dissipation=bushings.stribeck_friction(joint.a, joint.b, rotational)
        )
        return self._register_joint_output(joint, rotational, self._add_force_element(name, element, "friction", joint))

    def bushing(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        stiffness: object = None,
        damping: object = None,
        potential: ModelFunction | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        at: PointLike | None = None,
        at_second: PointLike | None = None,
        axes: object = None,
    ) -> Element:
        """Add a bushing: an elastic connection of two bodies in all six directions.

        A linear bushing is unloaded in the reference configuration. Displacements are resolved in the first body.
        Rotations enter as ``2 tan(angle/2)`` about their axis. Results: ``name.force`` (N) and ``name.torque`` (N m,
        about its point) on the second body, in space.

        Parameters
        ----------
        name : str
            Name of the bushing.
        body_a, body_b : Body
            Bodies with orientation, one of them possibly the ground.
        stiffness : array_like of shape (6,) or (6, 6), optional
            Stiffness along the axes (N/m) and about them (N m/rad), or a symmetric matrix. Default: 0.
        damping : array_like of shape (6,) or (6, 6), optional
            Damping along the axes (N s/m) and about them (N m s/rad), or a symmetric matrix.
        potential : callable, optional
            Potential energy in J in addition to that of the stiffness, as a function of some of ``displacement`` (the
            three displacements in m), ``rotation`` (the three rotations in rad) and ``k``. The antiderivative of a
            measured force is ``m.spline(displacement[0], x, force, derivative=-1)``.
        parameters : mapping of str to float, optional
            Parameters of the potential.
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
            If the model is planar, a body is a particle, or a matrix is not symmetric and positive semidefinite; if
            there is neither a stiffness nor a potential.
        """
        self._claim_name(name)
        self._check_body_pair(name, body_a, body_b)
        if stiffness is None and potential is None:
            raise InputError(f"{name}: a bushing needs a stiffness, a potential, or both")
        if self.dimension != 3 or not (body_a.has_orientation and body_b.has_orientation):
            raise InputError(f"{name}: a bushing needs two bodies with orientation, in a spatial model")
        position = at if at is not None else (body_b if body_b.element else body_a).reference_position
        position_a = parse_point(f"{name}: at", position, 3)
        position_b = position_a if at_second is None else parse_point(f"{name}: to", at_second, 3)
        R = np.eye(3) if axes is None else check_array(f"{name}: axes", axes, (3, 3))
        if np.abs(R.T @ R - np.eye(3)).max() > 1e-9:
            raise InputError(f"{name}: axes must have orthonormal columns")
        geometry: dict[str, Any] = dict(
            X=body_a.to_local(position_a),
            Y=body_b.to_local(position_b),
            A=body_a.in_body_axes(R),
            B=body_b.in_body_axes(R),
        )
        values = dict(parameters or {})
        if reserved := sorted(values.keys() & {*geometry, "stiffness", "viscosity"}):
            raise InputError(f"{name}: the parameter name '{reserved[0]}' is reserved: choose another name")
        law = None
        if potential is not None:
            arguments = (("displacement",), ("rotation",), *([("k",)] if values else []))
            shapes = ((3,), (3,), ())[: len(arguments)]
            check_law(f"{name}: the potential", potential, arguments, (), symbols_of(values), shapes)
            law = named_law(potential, arguments)
        values = geometry | values
        a, b = body_a.parametrisation, body_b.parametrisation
        functions: dict[str, Any] = dict(potential=bushings.bushing_potential(a, b, stiffness is not None, law))
        if damping is not None:
            values["viscosity"] = _spatial_matrix(f"{name}: damping", damping)
            functions["dissipation"] = bushings.bushing_dissipation(a, b)
        if stiffness is not None:
            values["stiffness"] = _spatial_matrix(f"{name}: stiffness", stiffness)
        element = Element(
            [*body_a.coordinates, *body_b.coordinates],
            parameters=values,
            name=name,
            **functions,
        )
        body, point_name, sign = (body_b, "Y", 1) if body_b.element is not None else (body_a, "X", -1)
        self._add_force_element(name, element)
        self._force_outputs.append(
            (name, BodyWrenchOutputs(element, body, geometry[point_name], ("force", "torque"), sign))
        )
        return element

    def cable(
        self, name: str, *points: object, stiffness: float, free_length: float | None = None, damping: float = 0.0
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
        ends = [AttachmentPoint(self._attachment(name, point)) for point in points]
        names = list(dict.fromkeys(str(c) for end in ends for c in end.coordinates))
        if not names:
            raise InputError(f"{name}: one of the points must belong to a body")
        indices = tuple(tuple(names.index(str(c)) for c in end.coordinates) for end in ends)
        parametrisations = tuple(end.parametrisation for end in ends)
        positions = [parse_point(name, x.centre if isinstance(x, Body) else x, self.dimension) for x in points]
        reference_length = sum(float(np.linalg.norm(y - x)) for x, y in itertools.pairwise(positions))
        parameters: dict[str, Any] = {f"X{i}": end.local_position for i, end in enumerate(ends)}
        parameters |= dict(
            stiffness=check_nonnegative(f"{name}: the stiffness", stiffness),
            length=reference_length if free_length is None else check_nonnegative(f"{name}: the length", free_length),
        )
        functions: dict[str, Any] = dict(potential=bushings.cable_potential(parametrisations, indices))
        if check_nonnegative(f"{name}: the damping", damping):
            parameters["viscosity"] = float(damping)
            functions["dissipation"] = bushings.cable_dissipation(parametrisations, indices)
        visual = bushings.cable_visual(parametrisations, indices)
        element = self._add_force_element(
            name, Element(names, parameters=parameters, name=name, visual=visual, **functions)
        )
        tension = bushings.cable_tension(parametrisations, indices, damping > 0)
        self._force_outputs.append(
            (name, CableOutputs(element, bushings.cable_length(parametrisations, indices), tension))
        )
        return element

    def wrench(
        self, name: str, body: Body, *, force: Any = None, torque: Any = None, at: Any = None, frame: str = "space"
    ) -> None:
        """Apply a force at a point and a torque to a body: constant, or functions of time and of the state of the body.

        A function may have the arguments ``t``, ``position`` and ``velocity`` (of the point `at`, in space),
        ``rotation`` (matrix of the body axes as columns) and ``omega`` (angular velocity, in space).

        Results: ``name.force`` (N) and ``name.torque`` (N m), in space.

        Parameters
        ----------
        name : str
            Name of the load.
        body : Body
            Loaded body.
        force : array_like or callable, optional
            Force in N, or a function of some of the arguments above.
        torque : array_like, float or callable, optional
            Torque in N m with components in space, or such a function; one number in the plane.
        at : array_like or Marker, optional
            Point of application in the reference configuration, in m; by default the centre of mass.
        frame : {"space", "body"}, default "space"
            Axes of the components of the force.

        Raises
        ------
        InputError
            If neither force nor torque is given, or the body is the ground.
        """
        self._check_body(name, body)
        if body.element is None or (force is None and torque is None):
            raise InputError(f"{name}: a wrench needs a force or a torque on a body")
        laws: dict[str, TimeLaw] = {}
        elements: dict[str, Element] = {}  # both elements are checked before one is added
        local_position = None if at is None else body.to_local(parse_point(name, at, self.dimension))
        for quantity, value in dict(force=force, torque=torque).items():
            if value is not None and loads.depends_on_state(value):
                laws[quantity] = TimeLaw(value, {}, {})
                elements[quantity] = loads.state_load(body.element, value, quantity == "force", local_position, frame)
        if force is not None and "force" not in elements:
            laws["force"] = law = time_law(f"{name}: force", force, "command", (self.dimension,))
            elements["force"] = loads.force(body.element, law, at=local_position, frame=frame)
        if torque is not None and "torque" not in elements:
            size = 1 if self.dimension == 2 else 3
            laws["torque"] = law = time_law(f"{name}: torque", torque, "command", (size,))
            elements["torque"] = loads.torque(body.element, law)
        for quantity, element in elements.items():
            self._add_force_element(name if quantity == next(iter(elements)) else f"{name} torque", element)
            self._register_inputs(element, laws[quantity].inputs)
            self._force_outputs.append((name, BodyWrenchOutputs(element, body, np.zeros(self.dimension), (quantity,))))

    def external_force(self, function: object, *, depends_on_velocity: bool = True, jacobian: object = None) -> None:
        """Apply an external force: compiled code that maps the state of all bodies to forces.

        The function receives the coordinates and velocities of `system`, in the order of ``system.coordinates``: of
        every body the centre of mass and the columns of its rotation matrix. See `livens.ExternalForce`.

        Parameters
        ----------
        function : cfunc, ctypes function, int or ExternalForce
            Compiled function, or its address.
        depends_on_velocity : bool, default True
            Whether the force depends on velocities. Of an `ExternalForce`, its own value is used.
        jacobian : cfunc, ctypes function or int, optional
            Compiled Jacobian for implicit schemes. Default: forward differences.

        Raises
        ------
        InputError
            If `function` is not compiled, the mechanism has an external force, or it has contact groups.

        Examples
        --------
        >>> import ctypes, livens as lv
        >>> doubles = ctypes.POINTER(ctypes.c_double)
        >>> @ctypes.CFUNCTYPE(None, doubles, doubles, doubles, doubles, doubles)
        ... def wind(q, v, t, k, force):
        ...     force[0] = 2.0  # N along x, at the centre of mass
        >>> mb = lv.Multibody()
        >>> ball = mb.sphere("ball", at=[0, 0, 0], radius=0.1, mass=1.0)
        >>> mb.external_force(wind, depends_on_velocity=False)
        >>> run = mb.simulate(h=0.1, t_end=1.0)
        >>> print(round(run["ball.position"][-1, 0], 12))
        1.0
        """
        if self._external_force is not None:
            raise InputError("the mechanism has an external force already: add both in one function")
        if self._contact_groups:
            raise InputError(
                "a mechanism with a contact group takes no external force: give the contacts with mb.contact instead"
            )
        force = function
        if not isinstance(force, ExternalForce):
            force = ExternalForce(function, depends_on_velocity=depends_on_velocity, jacobian=jacobian)
        elif jacobian is not None:
            raise InputError("give the Jacobian to lv.ExternalForce, or the compiled function itself")
        self._external_force = force
        self.__dict__.pop("_built", None)

    def wheel(
        self, name: str, body: Body, axis: object, inertia: float, *, rate: float = 0.0, torque: object = 0.0
    ) -> Element:
        """Add a wheel to a body: a flywheel, reaction wheel or gyroscope, as a gyrostat.

        The wheel has one coordinate, its spin, and no pose: at any rate the step size is that of the body alone.
        Energy and the angular momentum of body and wheel are conserved exactly. Results: ``name.rate`` (rad/s),
        relative to the body, and ``name.momentum`` (N m s) about the axis.

        Parameters
        ----------
        name : str
            Name of the wheel.
        body : Body
            Body that carries the wheel. Its mass and inertia contain those of the wheel, except for the inertia about
            the axis of the wheel.
        axis : array_like or str
            Axis of the wheel in the reference configuration: a vector, or "x", "y" or "z".
        inertia : float
            Moment of inertia of the wheel about its axis, in kg m^2.
        rate : float, default 0
            Initial angular rate relative to the body in rad/s.
        torque : float, callable or Input, default 0
            Torque of the motor on the wheel in N m: a constant, a function of time or an input. The opposite torque
            acts on the body.

        Returns
        -------
        Element
            Force element.

        Raises
        ------
        InputError
            If the model is planar, or the body is the ground or a particle.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=None)
        >>> bus = mb.body("bus", mass=100.0, inertia=[20.0, 25.0, 30.0])
        >>> wheel = mb.wheel("wheel", bus, "z", 0.05, rate=314.0, torque=0.02)
        >>> run = mb.simulate(t_end=1.0, h=0.01)
        >>> print(f"{run['wheel.momentum'][-1] - run['wheel.momentum'][0]:.6f}")
        0.020000
        """
        self._check_body(name, body)
        if self.dimension == 2 or body.element is None or not body.element.parametrisation.has_orientation:
            raise InputError(f"{name}: a wheel needs a rigid body in space that carries it")
        direction = body.reference_rotation.T @ parse_direction(f"{name}: axis", axis, 3)
        law = time_law(f"{name}: torque", torque, "command")
        moment, start = check_positive(f"{name}: inertia", inertia), check_number(f"{name}: rate", rate)
        wheel = Wheel.of_body(name, body, direction, moment, start, law)
        self._add_force_element(name, wheel.element)
        self._register_inputs(wheel.element, law.inputs)
        self._wheels[name] = wheel
        return wheel.element

    def observe(self, name: str, expression: ModelFunction) -> None:
        """Define a user output: a function of the coordinates and velocities of the system.

        Parameters
        ----------
        name : str
            Name of the output, shown as ``run[name]``.
        expression : callable
            Function of q and v, written with `livens.math`.
        """
        self._claim_name(name)
        if not callable(expression):
            raise InputError(f"{name}: an observed quantity must be a function of q and v, got {expression!r}")
        check_arguments(f"{name}: the observed quantity", expression, ("q", "v"))
        self._user_outputs[name] = expression


def _spring_energy(length: Any, k: Any) -> Any:
    return 0.5 * k.stiffness * (length - k.length) ** 2


def _damper_force(rate: Any, k: Any) -> Any:
    return k.viscosity * rate


def _spatial_matrix(context: str, value: object) -> np.ndarray:
    """Return a symmetric positive semidefinite 6x6 matrix from six diagonal entries or a matrix."""
    values = check_array(context, value)
    matrix = np.diag(values) if values.shape == (6,) else values
    if matrix.shape != (6, 6) or np.abs(matrix - matrix.T).max() > 1e-9 * np.abs(matrix).max():
        raise InputError(f"{context} must be six numbers or a symmetric 6x6 matrix, got shape {values.shape}")
    if np.linalg.eigvalsh(matrix)[0] < -1e-9 * np.abs(matrix).max():
        raise InputError(f"{context} must be positive semidefinite")
    return np.asarray(matrix)


@functools.lru_cache(maxsize=256)
def _time_only(law: Law) -> Law:
    """Return a law of ``(t, k)`` as a law in a joint."""
    return lambda t, coordinate, rate, k: law(t, k)
