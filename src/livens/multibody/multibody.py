"""Multibody models: `livens.Multibody`, built from bodies, joints and force elements in a reference configuration."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

import livens
from livens.errors import InputError, LivensError, abbreviate, explain_call_errors, suggestion
from livens.expressions.parameters import shared
from livens.late_attributes import LateAttributes
from livens.models.element import Element
from livens.models.problem import Problem
from livens.models.system import System
from livens.multibody import loads
from livens.multibody.assembly import Assembly, InitialCondition
from livens.multibody.body import Body, Marker
from livens.multibody.body_elements import AttachmentPoint, BodyElement, coordinates
from livens.multibody.builder.constraints import ConstraintMethods
from livens.multibody.builder.contacts import ContactMethods
from livens.multibody.builder.control import ControlMethods
from livens.multibody.builder.couplings import CouplingMethods
from livens.multibody.builder.joint_space import JointSpaceMethods
from livens.multibody.builder.joints import JointMethods
from livens.multibody.builder.plates import PlateMethods
from livens.multibody.builder.robot_files import RobotFileMethods
from livens.multibody.inputs import register_angle_branches, register_inputs, set_initial_branches
from livens.multibody.joint import Joint
from livens.multibody.joint_stops import close_initial_stops
from livens.multibody.momenta import angular_momentum, linear_momentum
from livens.multibody.outputs import model_outputs
from livens.multibody.sampled_controller import register_controllers
from livens.multibody.spanning_tree import tree_constraints
from livens.scene import html
from livens.scene.sketch import svg
from livens.types import ModelFunction
from livens.validation import (
    check_array,
    check_integer,
    check_number,
)

if TYPE_CHECKING:
    from livens.models.guarded_event import GuardedEvent
    from livens.multibody.contacts.rigid_contact import RigidContact, UnilateralContact
    from livens.multibody.contacts.shapes import CollisionShape
    from livens.results.result import Result

if TYPE_CHECKING:  # importers, contacts and statics are imported on demand
    from livens.multibody.mobility import MobilityReport
    from livens.multibody.statics import Equilibrium

#: Largest plausible initial angle in radians; a larger value is rejected, with a hint to `lv.deg`.
_MAX_PLAUSIBLE_ANGLE = 50.0
#: Largest number of load steps of a static equilibrium.
_MAX_LOAD_STEPS = 1_000_000


@explain_call_errors
class Multibody(
    LateAttributes,
    PlateMethods,
    JointMethods,
    ConstraintMethods,
    CouplingMethods,
    ControlMethods,
    ContactMethods,
    JointSpaceMethods,
    RobotFileMethods,
):
    """Multibody model: bodies, joints, force elements and contacts, added by methods.

    Points and axes are given in the reference configuration, in global coordinates. The reference configuration need
    not satisfy the constraints: `initial` sets initial values, and the assembly solves for a consistent initial state.

    Parameters
    ----------
    gravity : array_like of shape (3,) or (2,), optional
        Gravitational acceleration in m/s^2. By default there is none.
    planar : bool, default False
        If True, all bodies move in the plane x, y.
    redundant : {"auto", "error", "remove"}, default "auto"
        Treatment of redundant constraints.
    name : str, default "mechanism"
        Name of the mechanism in titles of reports, plots and animations.

    Examples
    --------
    >>> import livens as lv
    >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
    >>> arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    >>> hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
    >>> mb.initial(hinge, angle=90 * lv.deg, rate=0.5)
    >>> mb.check().mobility
    1
    """

    if TYPE_CHECKING:  # attached by later layers, see `attach`

        def simulate(
            self,
            t_end: float = 1.0,
            h: float | None = None,
            *,
            scheme: str | None = None,
            velocity_level: bool = False,
            **options: object,
        ) -> Result: ...

        def rigid_contact(
            self,
            first: Body | CollisionShape,
            second: Body | CollisionShape,
            *,
            restitution: float = 1.0,
            friction: float = 0.0,
            persistent: bool = True,
            unique: bool = False,
            name: str = "",
        ) -> list[RigidContact]: ...

        def _contact_events(self, system: System) -> tuple[GuardedEvent, ...]: ...

    # -- initial state ------------------------------------------------------------------------------------------------
    def initial(self, component: Joint | Body, *, required: bool = True, **targets: object) -> None:
        """Set initial values of a joint or of a body.

        All other coordinates and velocities follow from the constraints: the configuration nearest to the reference
        configuration, and the velocity of least kinetic energy.

        Parameters
        ----------
        component : Joint or Body
            Joint or body whose initial values are set.
        required : bool, default True
            Whether the values must be met exactly. Values that are not required are met in the least-squares sense.
        **targets : float or array_like
            For joints: ``angle`` (rad), ``rate`` (rad/s), ``position`` (m), ``velocity`` (m/s). For bodies:
            ``position`` (m) and ``velocity`` (m/s) of the centre of mass, ``omega`` (rad/s); components in space.

        Raises
        ------
        InputError
            If the joint or body does not have the quantity, or if an angle is implausibly large for radians.
        """
        if isinstance(component, Joint):
            self._check_joint("an initial value", component)
        else:
            self._check_body("an initial value", component)
        known = (
            {"angle", "rate", "position", "velocity"}
            if isinstance(component, Joint)
            else {"position", "velocity", "omega"}
        )
        for name, value in targets.items():
            if name not in known:
                raise InputError(f"{component.name}: there is no initial value '{name}'{suggestion(name, known)}")
            if isinstance(component, Joint):
                self._require_coordinate(
                    f"initial value of {component.name}", component, "angle" if name in ("angle", "rate") else "slide"
                )
            values = check_array(f"{component.name}: {name}", value)
            size = 1 if isinstance(component, Joint) or (name == "omega" and self.dimension == 2) else self.dimension
            if values.size != size or values.ndim > 1:
                expected = "one number" if size == 1 else f"{size} numbers"
                raise InputError(f"{component.name}: {name} must be {expected}, got {value!r}")
            if name == "angle" and abs(float(values.item())) > _MAX_PLAUSIBLE_ANGLE:
                raise InputError(
                    f"{component.name}: an angle of {float(values.item()):g} rad? "
                    f"In degrees it is written {value}*lv.deg"
                )
            self._initial_conditions.append(InitialCondition(component, name, np.atleast_1d(values), required))
        self.__dict__.pop("_built", None)

    @property
    def _unilateral_contacts(self) -> list[UnilateralContact]:
        """Unilateral contacts of the mechanism: joint stops and rigid contacts."""
        return [stop for stops in self._joint_stops.values() for stop in stops] + [*self._rigid_contacts.values()]

    @functools.cached_property
    def _built(self) -> tuple[System, Assembly]:
        built = self._build()
        stops = [stop for stops in self._joint_stops.values() for stop in stops]
        return self._build() if close_initial_stops(built[0], stops, built[1].position) else built

    def _build(self) -> tuple[System, Assembly]:
        system = self._build_system()
        states = {str(state.body.coordinates[0]): state.initial for state in self._integrator_states.values()}
        return system, Assembly(system, list(self.bodies.values()), list(self._initial_conditions), states)

    def _build_system(self) -> System:
        unused = [declared.name for declared in self._inputs.values() if not declared.uses]
        if unused:
            raise InputError(f"the input '{unused[0]}' is not used: pass it to a motor, drive, wrench or controller")
        set_initial_branches(self._angle_branches, self._initial_conditions)
        bodies = list(self.bodies.values())
        if not bodies:
            raise InputError("a mechanism needs at least one body")
        body_elements = [rigid_body.element for rigid_body in bodies if rigid_body.element is not None]
        extra_bodies = [state.body for state in self._integrator_states.values()]
        extra_bodies += [wheel.spin for wheel in self._wheels.values()]
        extra_bodies += [armature.rotor for armature in self.armatures.values()]
        extra_bodies += [body for contact in self._unilateral_contacts for body in contact.slack_states]
        elements: list[Element] = [
            *body_elements,
            *extra_bodies,
            *(component.element for component in self.connections.values()),
        ]
        elements += [component.element for component in self.couplings.values()]
        elements += [*(armature.element for armature in self.armatures.values()), *self._force_elements.values()]
        elements += [element for contact in self._pair_contacts.values() for element in contact.elements]
        elements += [contact.element for contact in self._unilateral_contacts if contact.element is not None]
        elements += [group.element for group in self._contact_groups.values()]
        elements += self._flexible_elements
        shared_parameters = {}
        if self.gravity is not None:
            shared_parameters["gravity"] = self.gravity
            elements += [_gravity_element(body) for body in body_elements]
        # monitored as long as no element, such as one fixed in space, breaks the symmetry
        momenta = dict(linear_momentum=linear_momentum(body_elements), angular_momentum=angular_momentum(body_elements))
        if extra_bodies:
            momenta = {name: _padded_generator(generator, len(extra_bodies)) for name, generator in momenta.items()}
        names = coordinates([*body_elements, *extra_bodies])
        system = System(names, elements=elements, parameters=shared_parameters, symmetries=momenta, frames=True)
        system.external_force = self._external_force
        if self._contact_groups:
            from livens.multibody.contacts.contact_group import build_detected_contacts

            system.external_force = build_detected_contacts(system, self)
        if self._pair_contacts:
            from livens.multibody.contacts.checks import swept_pairs

            system.swept_pairs = swept_pairs(self._pair_contacts.values(), system)
        system.redundancy_policy = self.redundant
        system.tree_constraints = functools.partial(tree_constraints, system)
        system.name = self.name
        constraints = dict(zip(map(id, system.elements), system.element_constraints, strict=True))
        system.controller_states = tuple(
            (
                system.coordinates.index(str(state.body.coordinates[0])),
                constraints[id(self._force_elements[name])].start,
            )
            for name, state in self._integrator_states.items()
        )
        register_inputs(system, self._inputs)
        register_angle_branches(system, self._angle_branches)
        system.quantities = model_outputs(system, self)
        if self._sampled_controllers:
            system.quantities |= register_controllers(system, self._sampled_controllers)
        if self._unilateral_contacts:
            system.model_events = self._contact_events(system)
        return system

    @property
    def system(self) -> System:
        """Equations of motion as a `System` of elements.

        Returns
        -------
        System
            System, built on first access and after every change of the model.
        """
        return self._built[0]

    @property
    def elements(self) -> tuple[Element, ...]:
        """Elements of the system.

        Returns
        -------
        tuple of Element
            Elements in the order of the system.
        """
        return self.system.elements

    @property
    def assembly(self) -> Assembly:
        """Solver of the initial configuration and velocities.

        Returns
        -------
        Assembly
            Assembly of this model.
        """
        return self._built[1]

    @property
    def initial_state(self) -> tuple[np.ndarray, np.ndarray]:
        """Consistent initial coordinates and velocities.

        Returns
        -------
        q : ndarray of shape (n,)
            Initial coordinates.
        v : ndarray of shape (n,)
            Initial velocities.

        Raises
        ------
        InputError
            If the constraints and required initial values cannot be met, or if bodies penetrate too deeply.
        """
        q, v = self.assembly.state
        if self._wheels:
            index, v = {name: i for i, name in enumerate(self.system.coordinates)}, v.copy()
            for wheel in self._wheels.values():
                dofs = [index[str(c)] for c in wheel.body.coordinates]
                v[index[str(wheel.spin.coordinates[0])]] = wheel.initial_spin(q[dofs], v[dofs])
        if self._pair_contacts or self._contact_groups:
            from livens.multibody.contacts.checks import check_initial_penetration
            from livens.multibody.contacts.contact_group import check_group_penetration

            check_initial_penetration(self._pair_contacts.values(), self.system, q)
            check_group_penetration(self._contact_groups, self.system, q)
        return q, v

    def check_step_size(self, h: float) -> None:
        """Check that a step size resolves the collisions that are about to happen.

        Parameters
        ----------
        h : float
            Step size in s.

        Raises
        ------
        InputError
            If an expected collision lasts less than two steps.
        """
        if not self._pair_contacts and not self._contact_groups:
            return
        from livens.multibody.contacts.checks import check_step_size
        from livens.multibody.contacts.contact_group import check_group_step_size

        gravity = np.zeros(self.dimension) if self.gravity is None else np.asarray(self.gravity, dtype=float)
        check_step_size(
            self._pair_contacts.values(), self.system, *self.assembly.state, h, float(np.linalg.norm(gravity))
        )
        check_group_step_size(self._contact_groups, self.system, *self.assembly.state, h, gravity)

    @property
    def default_scheme(self) -> str:
        """Default integration scheme of the model.

        Returns
        -------
        str
            ``"semi-explicit-2:0.5"`` with contact groups, else ``"lie-em"``.
        """
        return "semi-explicit-2:0.5" if self._contact_groups else "lie-em"

    def check(self) -> MobilityReport:
        """Report mobility, redundant constraints and the assembled initial values; nothing is compiled.

        Returns
        -------
        MobilityReport
            Report; ``print(mb.check())`` shows it as text.
        """
        from livens.multibody.mobility import mobility_report

        return dataclasses.replace(
            mobility_report(self.system, self.assembly, self.connections),
            import_warnings=tuple(self.import_warnings),
            drives=tuple(drive.name for drive, _ in self._drives),
        )

    def equilibrium(self, *, load_steps: int | None = None, t: float = 0.0) -> Equilibrium:
        """Compute a static equilibrium, and use it as the initial state, at rest.

        Parameters
        ----------
        load_steps : int, optional
            Number of load steps. Forces, torques and gravity then grow in at least this many steps, and each
            equilibrium is computed from the previous one. Use it for elastic bodies with large deflections. Without
            it, a Newton method with a line search on the energy starts from the initial configuration.
        t : float, default 0
            Time in s at which the loads are evaluated.

        Returns
        -------
        Equilibrium
            Coordinates, residual, stability and number of iterations.

        Raises
        ------
        InputError
            If no equilibrium is found, or if the model has a controller with a state.
        """
        if self._integrator_states:
            controller = next(iter(self._integrator_states))
            raise InputError(
                f"the equilibrium of the controller '{controller}' depends on its state; that of a PID controller has "
                "zero error: set it as initial value"
            )
        if load_steps is None:
            from livens.multibody.statics import equilibrium

            result = equilibrium(self.system, self.assembly)
        else:
            from livens.multibody.load_stepping import load_stepping

            steps = check_integer("load_steps", load_steps, minimum=1, maximum=_MAX_LOAD_STEPS)
            result = load_stepping(self.system, self.assembly, steps, check_number("t", t))
        self.assembly.set_rest_configuration(result.position)
        return result

    def sensor(self, name: str, target: Marker | Body | str, *, relative_to: Marker | Body | None = None) -> None:
        """Add a sensor: the motion of a point relative to a frame, or a vector resolved in a frame.

        Results of a point are ``name.position`` (m) and ``name.velocity`` (m/s), relative to the frame. The result of
        a quantity is ``run[name]``.

        Parameters
        ----------
        name : str
            Name of the sensor.
        target : Marker, Body or str
            Point of a body (for a body: its centre of mass), or the name of a vector such as ``"pin.force"``.
        relative_to : Marker or Body, optional
            Frame of a body. By default, or with the ground, the frame is that of space.

        Raises
        ------
        InputError
            If the target is not a point of a body of this model.
        """
        self._claim_name(name)
        frame = None if relative_to is None or relative_to is self.ground else self._marker(name, relative_to)
        if isinstance(target, str):
            self._resolved_outputs[name] = target, frame
        else:
            self._point_sensors[name] = self._marker(name, target), frame

    def _marker(self, name: str, value: object) -> Marker:
        marker = value.centre if isinstance(value, Body) and value.element is not None else value
        if not isinstance(marker, Marker):
            raise InputError(f"{name}: a sensor needs a point of a body, got {value!r}")
        self._check_body(name, marker.body)
        return marker

    def problem(
        self, name: str = "", *, h: float = 1e-3, t_end: float = 1.0, scheme: str | None = None, **options: Any
    ) -> Problem:
        """Return the model as a `Problem` with its initial values.

        Parameters
        ----------
        name : str, optional
            Name of the problem. By default, it is the name of the mechanism.
        h : float, default 1e-3
            Step size in s.
        t_end : float, default 1
            End time in s.
        scheme : str, optional
            Integration scheme; by default `default_scheme`.
        **options : optional
            Further fields of `Problem`.

        Returns
        -------
        Problem
            Problem with consistent initial values.
        """
        q, v = self.initial_state
        return Problem(name or self.name, self.system, q, v, scheme or self.default_scheme, h, t_end, **options)

    def to_joint_coordinates(self, name: str = "mechanism", *, h: float = 1e-3, t_end: float = 1.0) -> Problem:
        """Return a mechanism with tree structure as a `Problem` in joint coordinates (minimal coordinates).

        The coordinates are ``joint.angle`` and ``joint.position``. There are no constraints and no joint forces.
        Optimal control of arms is much faster in these coordinates. The geometry of the joints is constant.

        Parameters
        ----------
        name : str, default "mechanism"
            Name of the problem.
        h : float, default 1e-3
            Step size in s.
        t_end : float, default 1
            End time in s.

        Returns
        -------
        Problem
            Problem with the joint coordinates of the initial state.

        Raises
        ------
        InputError
            If the mechanism has closed loops, free bodies, or joints other than revolute and prismatic ones.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> rod = mb.rod("rod", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
        >>> hinge = mb.revolute("hinge", mb.ground, rod, at=rod.a, axis="y")
        >>> mb.to_joint_coordinates().model.coordinates
        ('hinge.angle',)
        """
        from livens.multibody.joint_coordinate_system import joint_coordinate_system

        system, to_bodies = joint_coordinate_system(
            self.system, list(self.bodies.values()), self.ground, list(self.joints.values())
        )
        q, v = self.initial_state
        values = q, v, np.zeros(self.system.m), 0.0, self.system.parameter_vector()
        arguments = [ca.SX(value) for value in values]
        outputs = [self.system.quantities[output] for output in system.coordinates]
        theta = np.array([float(ca.DM(output.expression(*arguments))) for output in outputs])
        jacobian = np.array(to_bodies.jacobian()(theta, 0 * theta, q, v)[0])
        rates = np.linalg.lstsq(jacobian, v, rcond=None)[0]
        return Problem(name, system, theta, rates, "livens-variational", h, t_end)

    @classmethod
    def attach(cls, name: str, value: object) -> None:
        """Add a method that a later layer defines, under a name listed in `livens.MULTIBODY_ACCESSORS`.

        Parameters
        ----------
        name : str
            Name of the method.
        value : callable
            Function or property.
        """
        setattr(
            cls, name, explain_call_errors(value, f"Multibody.{name}") if isinstance(value, FunctionType) else value
        )

    @classmethod
    def _late_attributes(cls) -> Mapping[str, str]:
        return livens.MULTIBODY_ACCESSORS

    def __repr__(self) -> str:
        name = "" if self.name == "mechanism" else f" {self.name}"
        return f"<livens.Multibody{name}: {len(self.bodies)} bodies, {len(self.joints)} joints>"

    def _repr_html_(self) -> str:
        """Return the summary and the picture of the initial configuration for notebooks."""
        summary = {
            "mechanism": self.name,
            "bodies": f"{len(self.bodies)}: {abbreviate(list(self.bodies))}",
            "joints": f"{len(self.joints)}: {abbreviate(list(self.joints))}" if self.joints else "",
            "forces": abbreviate(list(self._force_elements)),
            "gravity": "none" if self.gravity is None else f"{[float(g) for g in self.gravity]} m/s²",
            "more": "mb.check(), mb.simulate(t_end=, h=)",
        }
        try:
            picture = svg(*self.problem().initial_scene)
        except LivensError:  # incomplete mechanism
            picture = ""
        return f'<div style="display:flex;gap:1em;align-items:center">{picture}{html.definition_table(summary)}</div>'


def _padded_generator(generator: ModelFunction, count: int) -> ModelFunction:
    """Extend the generator of a symmetry by `count` coordinates that it leaves unchanged."""

    def generated(q: Any) -> Any:
        rows = generator(q[:-count])
        return np.hstack([rows, np.zeros((len(rows), count))])

    return generated


def _gravity_element(body: BodyElement) -> Element:
    """Return the gravity element of a body, with the gravity parameter shared by the whole model."""
    centre = AttachmentPoint((body, body.centre))
    parameters = dict(mass=shared(body, "mass"), X=centre.local_position)
    name = f"weight of {body.name}"
    return Element(
        centre.coordinates, potential=loads.gravity_potential(centre.parametrisation), parameters=parameters, name=name
    )
