"""Builder methods for forces in joints: torsion springs, motors, drives, limits, friction; inputs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.models.element import Element
from livens.multibody import bushings, joint_forces
from livens.multibody.builder.base import ModelBase
from livens.multibody.force_outputs import JointForceOutputs
from livens.multibody.inputs import (
    Input,
    Law,
    check_joint_law,
    joint_law,
    time_law,
)
from livens.multibody.joint import Joint
from livens.multibody.joint_forces import ZERO_BRANCH
from livens.multibody.joint_stops import JointStop
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_array, check_nonnegative, check_number, check_positive


class JointForceMethods(ModelBase):
    """Methods of `livens.Multibody` that add forces in joints, and inputs."""

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


@functools.lru_cache(maxsize=256)
def _time_only(law: Law) -> Law:
    """Return a law of ``(t, k)`` as a law in a joint."""
    return lambda t, coordinate, rate, k: law(t, k)
