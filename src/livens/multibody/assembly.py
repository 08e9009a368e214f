"""Assembly of a mechanism: consistent initial configuration, and initial velocities of least kinetic energy."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.equations_of_motion import equations_of_motion
from livens.models.linalg import SOLVED_RTOL, null_space
from livens.models.numeric_assembly import NumericAssembly
from livens.models.system import System
from livens.multibody.body import Body
from livens.multibody.couplings import Coupling
from livens.multibody.joint import Joint
from livens.multibody.joint_forces import angular_velocity
from livens.multibody.spanning_tree import SpanningTree
from livens.multibody.tree_velocities import tree_of, tree_velocity
from livens.multibody.twist_coordinates import TwistCoordinates, rotation_derivative
from livens.types import Expr, ScalarLike, Vector

#: Largest change of an initial value per Gauss-Newton step, in rad or m.
_MAX_STEP = 0.25
#: Tolerances of the constraint residual and of required initial values.
_CLOSURE_TOL, _TARGET_TOL = 1e-11, 1e-9
#: Gap of a loop, relative to the positions, below which it may be due to lengths with few digits.
_ROUNDED_DATA = 1e-5
#: Number of twist coordinates from which a model counts as large.
_LARGE_MODEL = 150
_VELOCITY_LEVEL = ("rate", "velocity", "omega")


@dataclass(frozen=True, eq=False)
class InitialCondition:
    """Initial condition: angle, rate, position or velocity of a joint, or position, velocity or omega of a body.

    For a coupling it is the phase: the weighted sum of its joint coordinates.
    """

    component: Joint | Body | Coupling
    quantity: str
    value: np.ndarray
    required: bool

    @property
    def is_velocity(self) -> bool:
        return self.quantity in _VELOCITY_LEVEL

    @property
    def is_periodic(self) -> bool:
        """True if the value is periodic with full turns; the last joint of a coupling has the coefficient one."""
        quantity = self.component.terms[-1][1] if isinstance(self.component, Coupling) else self.quantity
        return quantity == "angle"

    def __str__(self) -> str:
        return f"{self.component.name}.{self.quantity}"


class Assembly:
    """Solver of the initial state of a mechanism, with the reference configuration as initial guess."""

    def __init__(
        self,
        system: System,
        bodies: Sequence[Body],
        targets: Sequence[InitialCondition],
        states: Mapping[str, float] | None = None,
    ) -> None:
        self.system, self.bodies, self.targets = system, list(bodies), list(targets)
        self.twist = TwistCoordinates(system)
        self._rest = (np.zeros(system.n), 0.0, ca.DM(system.parameter_vector()))
        reference = np.concatenate(
            [
                body.element.parametrisation.from_pose(
                    body.reference_position, _spatial_rotation(body.reference_rotation)
                )
                for body in bodies
                if body.element is not None
            ]
        )
        #: Initial guess; additional states, such as integrator states of controllers, start from `states`, or zero.
        self.initial_guess = np.concatenate([reference, np.zeros(system.n - reference.size)])
        for name, value in (states or {}).items():
            self.initial_guess[system.coordinates.index(name)] = value

    @functools.cached_property
    def _function(self) -> ca.Function:
        system = self.system
        d = equations_of_motion(system)
        joint_constraints = list(self.twist.joint_constraints)
        g = d.g[joint_constraints] if joint_constraints else ca.SX(0, 1)
        positions, rates = self._expressions(d.q, d.v, False), self._expressions(d.q, d.v, True)
        arguments = [d.q, d.v, d.t, d.k]
        # evaluated at zero velocity: the hidden constraints then contain only their explicit time dependence
        hidden, G = (
            (d.velocity_constraint[joint_constraints], d.G[joint_constraints, :])
            if joint_constraints
            else (ca.SX(0, 1), ca.SX(0, system.n))
        )
        outputs = [g, ca.jacobian(g, d.q), hidden, positions, ca.jacobian(positions, d.q), ca.jacobian(rates, d.v)]
        mass = ca.jacobian(d.fibre_derivative, d.v)
        return ca.Function("assembly", arguments, [ca.densify(o) for o in (*outputs, mass, G)])

    @functools.cached_property
    def _tree(self) -> SpanningTree | None:
        """Spanning tree of a model that is a tree in a closed reference configuration, without position targets."""
        if any(not target.is_velocity for target in self.targets):
            return None
        tree = tree_of(self.system)
        if tree is None:
            return None
        numeric = NumericAssembly(self.system, 0.0, self.system.parameter_vector())
        residual = numeric.constraints(self.initial_guess)[list(self.twist.joint_constraints)]
        return tree if np.abs(residual).max(initial=0.0) <= 1e-15 else None

    @functools.cached_property
    def already_consistent(self) -> bool:
        """True if a large model is consistent in its reference configuration: no dense system need be solved."""
        system = self.system
        if (
            self.targets
            or self.twist.size < _LARGE_MODEL
            or any(group.element_type.velocity_constraints for group in system.element_groups)
        ):
            return False
        numeric = NumericAssembly(system, 0.0, system.parameter_vector())
        joint_constraints = list(self.twist.joint_constraints)
        residual, residual_rate = (
            numeric.constraints(self.initial_guess)[joint_constraints],
            numeric.constraint_velocity(self.initial_guess, np.zeros(system.n))[joint_constraints],
        )
        return bool(np.abs(residual).max(initial=0.0) <= 1e-15 and not residual_rate.any())

    @functools.cached_property
    def _has_free_bodies(self) -> bool:
        """True if no joint restricts the bodies, and the only targets are velocities of distinct bodies."""
        targets = {(id(target.component), target.quantity) for target in self.targets}
        return (
            not self.twist.joint_constraints
            and not any(group.element_type.velocity_constraints for group in self.system.element_groups)
            and all(target.is_velocity and isinstance(target.component, Body) for target in self.targets)
            and len(targets) == len(self.targets)
        )

    def _free_velocity(self) -> np.ndarray:
        """Return the velocities of free bodies, each at rest except for its own targets."""
        q, v = self.initial_guess, np.zeros(self.system.n)
        index = {name: i for i, name in enumerate(self.system.coordinates)}
        frames = {frame.position[0]: frame for frame in self.twist.frames}
        for target in self.targets:
            frame = frames[index[str(target.component.coordinates[0])]]
            if target.quantity == "velocity":
                v[list(frame.position)] = target.value
                continue
            for director in frame.directors:
                v[list(director)] = rotation_derivative(q[list(director)]) @ np.ravel(target.value)
        return v

    def _linearise(self, q: np.ndarray) -> list[np.ndarray]:
        """Return constraint residuals, their Jacobian and time derivative, position targets and their Jacobian, the
        Jacobian of rate targets, the mass matrix, and the Jacobian of all constraints by velocities."""
        return [np.array(x) for x in self._function(q, *self._rest)]

    def _expressions(self, q: Expr, v: Expr, rates: bool) -> Expr:
        """Return the measured quantities of the targets as expressions of the state."""
        index = {name: i for i, name in enumerate(self.system.coordinates)}
        expressions = []
        for target in self.targets:
            if target.is_velocity != rates:
                continue
            names = target.component.coordinates
            i = [index[str(name)] for name in names]
            of_q, of_v = m.from_casadi(q[i]), m.from_casadi(v[i])
            expressions.append(m.to_casadi(m.array(_target_expression(target, of_q, of_v))))
        return ca.densify(ca.vertcat(*expressions)) if expressions else ca.SX(0, 1)

    def _target_values(self, rates: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return target values, which of them are required, and which are angles."""
        selected = [target for target in self.targets if target.is_velocity == rates]
        values = [target.value for target in selected]
        required = [np.full(target.value.size, target.required) for target in selected]
        angles = [np.full(target.value.size, target.is_periodic) for target in selected]
        empty = np.zeros(0)
        return (
            np.concatenate(values) if values else empty,
            np.concatenate(required) if required else empty.astype(bool),
            np.concatenate(angles) if angles else empty.astype(bool),
        )

    # -- positions ----------------------------------------------------------------------------------------------------
    @functools.cached_property
    def position(self) -> np.ndarray:
        """Coordinates that satisfy all joints and required targets; other targets in the least-squares sense."""
        if self.already_consistent or self._has_free_bodies or self._tree is not None:
            return self.initial_guess
        value, required, angles = self._target_values(False)
        q = self._close_loops(self.initial_guess, value[:0], required[:0], angles[:0])
        if not value.size:
            return q
        initial_values = self._linearise(q)[3].ravel()
        increment = _wrapped(value - initial_values, angles)
        steps = max(1, int(np.ceil(np.abs(increment).max() / _MAX_STEP)))
        for i in range(1, steps + 1):
            q = self._close_loops(q, initial_values + increment * i / steps, required, angles)
        reached = self._linearise(q)[3].ravel()
        missed = np.abs(_wrapped(value - reached, angles)) * required
        if missed.max() > _TARGET_TOL:
            names = [str(target) for target in self.targets if not target.is_velocity for _ in range(target.value.size)]
            worst = int(np.argmax(missed))
            raise InputError(
                f"the initial values cannot be met: {names[worst]} is required to be {value[worst]:.6g}, and the "
                f"joints allow only {reached[worst]:.6g} nearby; relax some of the initial values with required=False"
            )
        return q

    def _close_loops(self, q: np.ndarray, value: np.ndarray, required: np.ndarray, angles: np.ndarray) -> np.ndarray:
        """Solve by damped Gauss-Newton: constraints and required targets first, others in their null space."""
        size = np.inf
        for _ in range(60):
            g, G, _, values, H, _, mass, _ = self._linearise(q)
            N = self.twist.kinematic_matrix(q)
            whitening = _mass_whitening(N.T @ mass @ N)
            gap = _wrapped(value - values.ravel()[: value.size], angles)
            jacobian = np.vstack([G @ N, (H @ N)[: value.size][required]]) @ whitening
            residual = np.concatenate([-g.ravel(), gap[required]])
            y = _min_norm_solution(jacobian, residual)
            optional_jacobian = (H @ N)[: value.size][~required] @ whitening
            if optional_jacobian.size:
                null_basis = null_space(jacobian, SOLVED_RTOL)
                y = y + null_basis @ _min_norm_solution(
                    optional_jacobian @ null_basis, gap[~required] - optional_jacobian @ y, optional_jacobian
                )
            y = whitening @ y
            length = float(np.abs(y).max()) if y.size else 0.0
            if length <= 1e-15 or (length < 1e-12 and length >= size):
                break
            q = self.twist.retract(q, y * min(1.0, _MAX_STEP / length))
            size = length
        g = self._linearise(q)[0].ravel()
        if g.size and not np.abs(g).max() <= _CLOSURE_TOL:
            worst = self.twist.joint_constraints[int(np.nanargmax(np.abs(g)))]
            problem = "the initial values cannot be met:" if value.size else "the mechanism cannot be assembled:"
            name = self.system.constraint_names[worst]
            opening, hint = float(np.abs(g).max()), ""
            if opening <= _ROUNDED_DATA * (1.0 + np.abs(q).max()):
                hint = (
                    ". The gap is of the size of rounded lengths: these joints are redundant, and fit together with "
                    "exact lengths only, such as three parallel cranks. Remove a joint that closes the loop, or "
                    "replace it by a penalty joint or a bushing"
                )
            raise InputError(f"{problem} '{name}' stays open by {opening:.3g}{hint}")
        return q

    # -- velocities ---------------------------------------------------------------------------------------------------
    @functools.cached_property
    def velocity(self) -> np.ndarray:
        """Velocities of least kinetic energy that satisfy the constraints and the required rates."""
        if self.already_consistent:
            return np.zeros(self.system.n)
        if self._has_free_bodies:
            return self._free_velocity()
        q = self.position
        if self._tree is not None:
            tree_solution = tree_velocity(self.system, self._tree, q, self.targets)
            if tree_solution is not None:
                return tree_solution
        value, required, _ = self._target_values(True)
        _, _, hidden, _, _, V, mass, G = self._linearise(q)
        N = self.twist.kinematic_matrix(q)
        whitening = _mass_whitening(N.T @ mass @ N)
        jacobian = np.vstack([G @ N, (V @ N)[required]]) @ whitening
        right = np.concatenate([-hidden.ravel(), value[required]])
        length = np.linalg.norm(jacobian, axis=1)  # rows of light and heavy bodies differ by orders of magnitude
        length = np.where(length > 0, length, 1.0)
        unit_rows = jacobian / length[:, None]
        y = _min_norm_solution(unit_rows, right / length)
        missed = np.abs(jacobian @ y - right)
        if missed.size and missed.max() > _TARGET_TOL * (1.0 + np.abs(right).max()):
            names = [str(t) for t in self.targets if t.is_velocity and t.required for _ in range(t.value.size)]
            names = [*(self.system.constraint_names[i] for i in self.twist.joint_constraints), *names]
            raise InputError(
                "the initial values cannot be met: the joints do not allow the required rates, "
                f"see {names[int(np.argmax(missed))]}"
            )
        if (~required).any():
            optional_jacobian, null_basis = (V @ N)[~required] @ whitening, null_space(unit_rows, SOLVED_RTOL)
            y = y + null_basis @ _min_norm_solution(
                optional_jacobian @ null_basis, value[~required] - optional_jacobian @ y, optional_jacobian
            )
        return np.asarray(N @ (whitening @ y))

    def set_rest_configuration(self, q: np.ndarray) -> None:
        """Use a configuration as initial state, at rest except for drives."""
        self.__dict__["position"] = q
        self.targets = [target for target in self.targets if not target.is_velocity]
        self.__dict__.pop("velocity", None)
        self.__dict__["velocity"] = self._drive_velocity(q)

    def _drive_velocity(self, q: np.ndarray) -> np.ndarray:
        """Return the velocity of least kinetic energy that the rheonomic constraints impose."""
        if self.already_consistent:
            return np.zeros(self.system.n)
        _, _, hidden, _, _, _, mass, G = self._linearise(q)
        N = self.twist.kinematic_matrix(q)
        whitening = _mass_whitening(N.T @ mass @ N)
        return np.asarray(N @ (whitening @ _min_norm_solution(G @ N @ whitening, -hidden.ravel())))

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray]:
        return self.position, self.velocity

    def target_report(self) -> list[tuple[str, float, float]]:
        """Return name, target and reached value of every initial condition, without the phases of couplings."""
        table = []
        for rates, matrix in ((False, None), (True, 5)):
            value, _, angles = self._target_values(rates)
            values = (
                self._linearise(self.position)[3].ravel()
                if matrix is None
                else self._linearise(self.position)[5] @ self.velocity
            )
            values = value - _wrapped(value - values, angles)
            selected = [t for t in self.targets if t.is_velocity == rates for _ in range(t.value.size)]
            rows = zip(selected, value.tolist(), np.ravel(values).tolist(), strict=True)
            table += [(str(t), target, now) for t, target, now in rows if not isinstance(t.component, Coupling)]
        return table

    def computed_values(self, joints: Iterable[object], mobility: int) -> list[tuple[str, float]]:
        """Return name and value of joint coordinates and rates that are not zero, not given and not determined.

        Initial values determine the positions, or the velocities, if they are as many as the degrees of freedom.
        """
        names_given, table = {str(target) for target in self.targets}, []
        for names in (("angle", "position"), ("rate", "velocity")):
            n_given = sum(t.value.size for t in self.targets if t.quantity in names)
            if not 0 < n_given < mobility:
                continue
            for joint in joints:
                if not isinstance(joint, Joint):
                    continue
                for quantity, is_free in zip(names, (joint.joint_type.angle, joint.joint_type.slide), strict=True):
                    if not is_free or f"{joint.name}.{quantity}" in names_given:
                        continue
                    value = self._joint_value(joint, quantity)
                    if abs(value) > _TARGET_TOL:
                        table.append((f"{joint.name}.{quantity}", value))
        return table

    def _joint_value(self, joint: Joint, quantity: str) -> float:
        index = {name: i for i, name in enumerate(self.system.coordinates)}
        i = [index[str(name)] for name in joint.coordinates]
        condition = InitialCondition(joint, quantity, np.zeros(1), False)
        (value,) = _target_expression(condition, self.position[i], self.velocity[i])
        return float(np.asarray(value, dtype=float))

    # -- ranks --------------------------------------------------------------------------------------------------------
    def generic_configuration(self) -> np.ndarray:
        """Return a generic configuration near the initial one, for rank decisions."""
        q = self.position
        _, _, _, _, _, _, mass, G = self._linearise(q)
        N = self.twist.kinematic_matrix(q)
        whitening = _mass_whitening(N.T @ mass @ N)
        null_basis = null_space(G @ N @ whitening, SOLVED_RTOL)
        if not null_basis.shape[1]:
            return q
        direction = whitening @ null_basis @ np.random.default_rng(7).standard_normal(null_basis.shape[1])
        try:
            return self.project(self.twist.retract(q, 0.02 * direction / np.abs(direction).max()))
        except InputError:
            return q

    def project(self, q: np.ndarray) -> np.ndarray:
        """Project a configuration onto the position constraints, without targets."""
        empty = np.zeros(0)
        return self._close_loops(q, empty, empty.astype(bool), empty.astype(bool))

    def constraint_jacobian(self, q: np.ndarray) -> np.ndarray:
        """Return the Jacobian of the constraints between bodies in twist coordinates."""
        return np.asarray(self._linearise(q)[7] @ self.twist.kinematic_matrix(q))

    def normalised_constraint_jacobian(self, q: np.ndarray) -> np.ndarray:
        """Return the Jacobian of the constraints between bodies in twist coordinates, with rows of unit length."""
        jacobian = self.constraint_jacobian(q)
        length = np.linalg.norm(jacobian, axis=1, keepdims=True)
        return np.asarray(jacobian / np.where(length > 0, length, 1.0))


def _target_expression(target: InitialCondition, q: Vector, v: Vector) -> list[ScalarLike]:
    component = target.component
    if isinstance(component, Coupling):
        return [sum(weight * value for value, (_, _, weight) in zip(component.values(q), component.terms, strict=True))]
    if isinstance(component, Joint):
        coordinates = {"angle": component.angle, "position": component.displacement}
        rates = {"rate": component.angle_rate, "velocity": component.displacement_rate}
        value = coordinates[target.quantity](q) if target.quantity in coordinates else rates[target.quantity](q, v)
        return [value] if not isinstance(value, np.ndarray) or value.ndim == 0 else list(value)
    d = component.dimension
    if target.quantity == "omega":
        omega = angular_velocity(component.parametrisation, q, v)
        return list(m.array(omega).ravel())
    return list((q if target.quantity == "position" else v)[:d])


def _spatial_rotation(R: np.ndarray) -> np.ndarray:
    if R.shape == (3, 3):
        return R
    rotation = np.eye(3)
    rotation[:2, :2] = R
    return rotation


def _mass_whitening(mass: np.ndarray) -> np.ndarray:
    """Return the mass whitening W with ``W^T M W = I``."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(mass)).T)


def _min_norm_solution(matrix: np.ndarray, right: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
    """Return the minimum-norm least-squares solution; entries below the rank tolerance of `before` are set to zero."""
    if not matrix.size:
        return np.zeros(matrix.shape[1])
    if before is not None:
        matrix = np.where(np.abs(matrix) > SOLVED_RTOL * np.abs(before).max(initial=0.0), matrix, 0.0)
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=SOLVED_RTOL)[0])


def _wrapped(gap: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return differences with angles wrapped to half a turn."""
    return np.where(angles, np.remainder(gap + np.pi, 2 * np.pi) - np.pi, gap) if gap.size else gap
