"""First-order DAE of multibody equations in a chosen formulation: index reduction, GGL, consistent initial values."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.base import ConservationGuarantees, InitialState, check_initial_value_names
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.models.initialization.gauss_newton import gauss_newton, inconsistent_values_error
from livens.models.linalg import dependent_rows
from livens.scene.scene import Visual, default_visuals
from livens.types import Expr
from livens.validation import check_choice, check_vector

if TYPE_CHECKING:
    from livens.models.multibody_equations import MultibodyEquations

FORMULATIONS = ("index-3", "index-2", "ggl", "ggl-principle", "index-1")
#: Stabilized formulations: constraints at both levels, with multipliers mu.
STABILIZED = ("ggl", "ggl-principle")
#: Relative tolerance of constraint residuals, with respect to the magnitude of their terms.
_TOLERANCE = 1e-10
#: Reciprocal condition number below which the kinematic matrix is singular.
_RCOND_MIN = 1e-8


def _replace_row(residual: Expr, i: int, row: Expr) -> Expr:
    """Return the residual with row i replaced."""
    changed = ca.SX(ca.densify(residual))
    changed[i] = row
    return changed


class MultibodyDAE(DescriptorModel):
    """Multibody DAE of first order in a chosen formulation; see `MultibodyEquations.formulate`."""

    type_label = "FirstOrder"

    @property
    def default_scheme(self) -> str:  # type: ignore[override]  # also without constraints
        return "radau-iia-3"

    def __init__(
        self, equations: MultibodyEquations, formulation: str, removed_constraints: tuple[int, ...] = ()
    ) -> None:
        self.equations, self.formulation, self.removed_constraints = equations, formulation, removed_constraints
        e = equations
        self.coordinates, self.model_parameters = (*e.coordinates, *e.velocities), e.model_parameters
        self.parameter_table = e.parameter_table
        multipliers = [f"lam[{i}]" for i in range(e.m)]
        multipliers += [f"mu[{i}]" for i in range(e.m)] if formulation in STABILIZED else []
        self.algebraic_names = (*e.auxiliary, *multipliers)
        self.n = len(self.coordinates)

    @functools.cached_property
    def descriptor(self) -> Descriptor:
        e = self.equations
        is_stabilized = self.formulation in STABILIZED
        lam, mu = e.lam, ca.SX.sym("mu", e.m if is_stabilized else 0)
        q_dot, v_dot = ca.SX.sym("q'", e.n), ca.SX.sym("v'", e.n)
        x = ca.vertcat(e.q, e.v, e.s, lam, mu)
        xdot = ca.vertcat(q_dot, v_dot, ca.SX.sym("y'", len(self.algebraic_names)))
        ggl_term = e.G.T @ mu if self.formulation == "ggl" else 0
        residuals = [q_dot - e.Z @ e.v - ggl_term, e.M @ v_dot - e.f + e.Z.T @ (e.G.T @ lam), e.c]
        if self.formulation == "ggl-principle":
            # M q' = p + G^T mu with the force sum_k mu_k D^2 g_k v
            residuals[0] = e.M @ (q_dot - e.v) - e.G.T @ mu
            residuals[1] += ca.gradient(ca.dot(mu, e.G @ e.v), e.q)
        if is_stabilized or self.formulation == "index-3":
            residuals.append(e.g)
        if is_stabilized or self.formulation == "index-2":
            residuals.append(e.velocity_constraint)
        if self.formulation == "index-1":
            A, b = e.acceleration_constraint
            residuals.append(A @ v_dot + b)
        for i in self.removed_constraints:
            residuals[3] = _replace_row(residuals[3], i, lam[i])
            if is_stabilized:
                residuals[4] = _replace_row(residuals[4], i, mu[i])
        return Descriptor(x, xdot, e.t, e.k, ca.densify(ca.vertcat(*residuals)))

    @property
    def excluded_from_error_norm(self) -> tuple[str, ...]:
        """Multipliers mu of the GGL formulation, which vanish for exact solutions."""
        return tuple(name for name in self.algebraic_names if name.startswith("mu["))

    @property
    def guards(self) -> Mapping[str, Any]:
        e = self.equations
        if e.Z.is_eye():
            return {}
        message = "the kinematic matrix Z is singular: other angles (another rotation sequence) are needed"
        return {message: 1 / ca.det(e.Z)}

    def visuals(self, k: np.ndarray) -> list[Visual]:
        """Return default visuals: spheres at coordinates named x and y."""
        return default_visuals(self.coordinates)

    @property
    def observables(self) -> Mapping[str, Any]:
        e = self.equations
        return {
            "total_energy": e.T + e.V,
            "kinetic_energy": e.T,
            "potential_energy": e.V,
            "constraint": e.g,
            "velocity_constraint": e.velocity_constraint,
        }

    def monitored_energy(self, conserved: tuple[str, ...]) -> str:
        return "total_energy"

    def energy_scale(self) -> Expr:
        return self.equations.T

    def monitored_constraints(self) -> tuple[Expr, Expr]:
        return self.equations.g, self.equations.velocity_constraint

    def velocity_expression(self) -> Expr:
        return self.equations.v

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a quantity is guaranteed; constraints only at the levels that the formulation imposes."""
        imposed = {"constraint": ("index-3", *STABILIZED), "velocity_constraint": ("index-2", *STABILIZED)}
        if name not in imposed:
            return super().is_guaranteed_by(scheme, name, k)
        return scheme is not None and "constraint" in scheme.conserves and self.formulation in imposed[name]

    def initial_values_from(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        n = self.equations.n
        return {"q0": values["x"][:n], "v0": values["x"][n:]}

    def fingerprint_data(self) -> Sequence[object]:
        return (
            self.formulation,
            *((self.removed_constraints,) if self.removed_constraints else ()),
            *super().fingerprint_data(),
        )

    # -- initial state ------------------------------------------------------------------------------------------------
    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        """Return the initial state for q0 and v0; multipliers of redundant constraints are zero."""
        check_initial_value_names(initial_values, ("q0", "v0"), "formulation of a multibody system")
        check_choice("redundant", redundant, ("error", "remove", "auto"))
        e = self.equations
        q = check_vector("q0", initial_values.get("q0"), e.coordinates, "coordinate")
        v = check_vector("v0", initial_values.get("v0"), e.velocities, "velocity")
        message = self.singularity_message(q, t0, k)
        if message:
            raise InputError(f"cannot start at q0: {message}")
        if project:
            q, v = self._project(q, v, t0, k)
        s = self._solve_auxiliary(q, t0, k)
        g, g_dot, G, M, f, A, b = self._evaluate(q, v, s, t0, k)
        for level, residual, weights in (
            ("position", g, np.abs(G) @ np.abs(q)),
            ("velocity", g_dot, np.abs(A) @ np.abs(v)),
        ):
            relative = np.abs(residual.ravel()) / (1 + weights)
            if residual.size and not relative.max() <= _TOLERANCE:
                worst = int(np.argmax(relative))
                raise inconsistent_values_error(
                    f"inconsistent initial values: constraint {worst} is violated on {level} level by "
                    f"{residual.ravel()[worst]:.3g}",
                    self.coordinates,
                    self._consistent_values(q, v, t0, k),
                )
        removed = self._redundant_constraints(q, A, t0, k)
        if removed and redundant == "error":
            raise InputError(
                f"constraints are redundant: {', '.join(f'constraint {i}' for i in removed)} "
                f"follow{'s' if len(removed) == 1 else ''} from the others; pass redundant='remove' to leave "
                f"{'it' if len(removed) == 1 else 'them'} out"
            )
        independent = [i for i in range(e.m) if i not in removed]
        matrix = np.block([[M, A[independent].T], [A[independent], np.zeros((len(independent), len(independent)))]])
        if not np.all(np.isfinite(matrix)):
            raise InputError("the equations cannot be evaluated at q0, v0: the result is not finite")
        lam = np.zeros(e.m)
        lam[independent] = np.linalg.lstsq(matrix, np.concatenate([f.ravel(), -b.ravel()[independent]]), rcond=None)[0][
            e.n :
        ]
        if self._forces_depend_on_multipliers:
            lam = self._multipliers_with_friction(q, v, s, lam, t0, k)
        y = np.concatenate([s, lam, np.zeros(len(self.algebraic_names) - len(s) - e.m)])
        return InitialState(t0, {"x": np.concatenate([q, v])} | ({"y": y} if self.algebraic_names else {}), removed)

    def without_constraints(self, removed_constraints: Collection[int]) -> MultibodyDAE:
        """Return the model with the equation ``lam_i = 0`` in place of each removed constraint."""
        return (
            MultibodyDAE(self.equations, self.formulation, tuple(removed_constraints)) if removed_constraints else self
        )

    def _evaluate(self, q: np.ndarray, v: np.ndarray, s: np.ndarray, t: float, k: np.ndarray) -> list[np.ndarray]:
        """Return g, its time derivative, G, M, f, and A and b of the acceleration-level constraint."""
        return [np.array(value) for value in self._level_function(q, v, s, t, k)]

    @functools.cached_property
    def _level_function(self) -> ca.Function:
        e = self.equations
        f = ca.substitute(e.f, e.lam, ca.SX.zeros(e.m))
        return ca.Function(
            "at", [e.q, e.v, e.s, e.t, e.k], [e.g, e.velocity_constraint, e.G, e.M, f, *self._acceleration_level()]
        )

    @functools.cached_property
    def _forces_depend_on_multipliers(self) -> bool:
        """True if forces depend on the multipliers."""
        return bool(ca.depends_on(self.equations.f, self.equations.lam))

    def _multipliers_with_friction(
        self, q: np.ndarray, v: np.ndarray, s: np.ndarray, lam: np.ndarray, t: float, k: np.ndarray
    ) -> np.ndarray:
        """Return the multipliers for forces that depend on them, by Newton's method from the given multipliers."""
        e, (A, b) = self.equations, self._acceleration_level()
        a = ca.SX.sym("a", e.n)
        residual = ca.vertcat(e.M @ a + A.T @ e.lam - e.f, A @ a + b)
        unknown = ca.vertcat(a, e.lam)
        residual_and_jacobian = ca.Function(
            "both", [unknown, e.q, e.v, e.s, e.t, e.k], [residual, ca.jacobian(residual, unknown)]
        )

        def step(x: np.ndarray) -> np.ndarray | None:
            value, jacobian = (np.array(part) for part in residual_and_jacobian(x, q, v, s, t, k))
            if not np.all(np.isfinite(jacobian)):
                return None
            return np.asarray(np.linalg.lstsq(jacobian, value.ravel(), rcond=1e-12)[0])

        x, converged = gauss_newton(step, np.concatenate([np.zeros(e.n), lam]), rtol=1e-13)
        if converged:
            return x[e.n :]
        raise InputError(
            "no multipliers were found that fulfil the equations at q0, v0 with forces that depend on them"
        )

    def _project(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions on the constraints by Gauss-Newton steps, and the nearest consistent velocities."""

        def step(q: np.ndarray) -> np.ndarray | None:
            g, _, G, *_ = self._evaluate(q, v, self._solve_auxiliary(q, t, k), t, k)
            return np.asarray(np.linalg.lstsq(G, g.ravel(), rcond=1e-10)[0]) if np.all(np.isfinite(G)) else None

        if not self.equations.m:
            return q, v
        q, _ = gauss_newton(step, q)
        _, g_dot, _, _, _, A, _ = self._evaluate(q, v, self._solve_auxiliary(q, t, k), t, k)
        if not np.all(np.isfinite(A)):
            return q, v
        return q, v - np.linalg.lstsq(A, g_dot.ravel(), rcond=1e-10)[0]

    def _consistent_values(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> np.ndarray | None:
        """Return consistent positions and velocities nearby; None if they are not finite."""
        projected = np.hstack(self._project(q, v, t, k))
        return projected if np.all(np.isfinite(projected)) else None

    def _redundant_constraints(self, q: np.ndarray, A: np.ndarray, t: float, k: np.ndarray) -> tuple[int, ...]:
        """Return the redundant constraints, which are dependent at an offset from the initial position as well."""
        dependent = dependent_rows(A)
        if not dependent:
            return ()
        free = np.linalg.svd(A)[2][np.linalg.matrix_rank(A, tol=1e-9) :]
        direction = free.T @ np.random.default_rng(7).standard_normal(len(free))
        if not direction.size or not np.abs(direction).max() > 0:
            return dependent
        e = self.equations
        Z = np.array(ca.Function("Z", [e.q, e.k], [e.Z])(q, k))
        q_offset, v = self._project(
            q + 0.02 * (1 + np.abs(q).max()) * (Z @ direction) / np.abs(direction).max(), 0 * q, t, k
        )
        values = self._evaluate(q_offset, v, self._solve_auxiliary(q_offset, t, k), t, k)
        return dependent_rows(values[5]) if np.abs(values[0]).max(initial=0.0) < 1e-8 else dependent

    def _acceleration_level(self) -> tuple[Expr, Expr]:
        e = self.equations
        return e.acceleration_constraint if e.m else (ca.SX(0, e.n), ca.SX(0, 1))

    def _solve_auxiliary(self, q: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
        """Return s with c(q, s) = 0, by Newton's method from zero."""
        e = self.equations
        s = np.zeros(len(e.auxiliary))
        if not s.size:
            return s
        conditions = ca.Function("c", [e.q, e.s, e.t, e.k], [e.c, ca.jacobian(e.c, e.s)])

        def step(s: np.ndarray) -> np.ndarray:
            value, jacobian = (np.array(part) for part in conditions(q, s, t, k))
            if not np.all(np.isfinite(jacobian)) or np.linalg.matrix_rank(jacobian) < s.size:
                raise InputError("the conditions c(q, s) = 0 do not determine the auxiliary variables at q0")
            return np.linalg.solve(jacobian, value.ravel())

        s, converged = gauss_newton(step, s)
        if converged:
            return s
        raise InputError("no auxiliary variables were found that fulfil the conditions c(q, s) = 0 at q0")

    def singularity_message(self, q: np.ndarray, t: float, k: np.ndarray) -> str:
        """Return a message if the kinematic matrix is singular at q, otherwise an empty string."""
        e = self.equations
        if e.Z.is_eye():
            return ""
        Z = np.array(ca.Function("Z", [e.q, e.k], [e.Z])(q, k))
        rcond = 0.0 if not np.all(np.isfinite(Z)) else 1 / np.linalg.cond(Z)
        if rcond > _RCOND_MIN:
            return ""
        angles = ", ".join(f"{name} = {value:.6g}" for name, value in zip(e.coordinates, q, strict=True))
        return f"the kinematic matrix Z is singular at {angles}; other angles (another rotation sequence) are needed"
