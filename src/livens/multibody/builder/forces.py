"""Builder methods for force elements: bushings, loads and wheels, with those of points and joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.models.element import Element
from livens.models.external_force import ExternalForce
from livens.multibody import bushings, loads
from livens.multibody.body import Body, PointLike, parse_direction, parse_point
from livens.multibody.builder.joint_forces import JointForceMethods
from livens.multibody.builder.point_forces import PointForceMethods
from livens.multibody.force_outputs import BodyWrenchOutputs
from livens.multibody.inputs import (
    TimeLaw,
    check_law,
    named_law,
    symbols_of,
    time_law,
)
from livens.multibody.wheel import Wheel
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_arguments, check_array, check_number, check_positive


class ForceMethods(PointForceMethods, JointForceMethods):
    """Methods of `livens.Multibody` that add force elements."""

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


def _spatial_matrix(context: str, value: object) -> np.ndarray:
    """Return a symmetric positive semidefinite 6x6 matrix from six diagonal entries or a matrix."""
    values = check_array(context, value)
    matrix = np.diag(values) if values.shape == (6,) else values
    if matrix.shape != (6, 6) or np.abs(matrix - matrix.T).max() > 1e-9 * np.abs(matrix).max():
        raise InputError(f"{context} must be six numbers or a symmetric 6x6 matrix, got shape {values.shape}")
    if np.linalg.eigvalsh(matrix)[0] < -1e-9 * np.abs(matrix).max():
        raise InputError(f"{context} must be positive semidefinite")
    return np.asarray(matrix)
