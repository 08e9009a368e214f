"""Multibody equations of motion with quasi-velocities and auxiliary variables, formulated as DAEs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, suggestion
from livens.expressions.names import Names, names_of
from livens.expressions.numbers import one_of, vector
from livens.expressions.parameters import Namespace, Parameters, ParameterTable
from livens.expressions.read import Reader
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.models.index_test import IndexTest, index_test
from livens.models.model import InitialState, Promising, only
from livens.models.redundancy import dependent_rows
from livens.models.scene import Look, particles
from livens.models.summed import dynamics
from livens.models.system import System

FORMULATIONS = ("index-3", "index-2", "ggl", "ggl-principle", "index-1")
#: Stabilized formulations: constraints at both levels, with multipliers mu.
_BOTH_LEVELS = ("ggl", "ggl-principle")
#: Relative tolerance of constraint residuals, with respect to the magnitude of their terms.
_TOLERANCE = 1e-10
#: Reciprocal condition number below which the kinematic matrix is singular.
_NEARLY_SINGULAR = 1e-8


class MultibodyEquations:
    """Multibody equations with quasi-velocities and auxiliary variables (S002 def. 2.1).

    The equations are ``q' = Z(q) v``, ``M(q) v' = f - Z^T G^T lam``, ``0 = c(q, s)``, ``0 = g(q, s)``, where G is the
    total derivative of g with respect to q. They follow from d'Alembert's principle in Hamel's form, with gyroscopic
    terms. Model functions take any of ``q v s t k`` by argument name, forces also ``lam``. `formulate` returns a model
    for Runge-Kutta schemes.

    Parameters
    ----------
    coordinates : str, sequence of str or int
        Names of the coordinates, or their number n.
    kinetic : callable, optional
        Kinetic energy, a function of ``q v k``, in joules.
    mass : array_like or callable, optional
        Mass matrix M(q) of shape (n, n), instead of `kinetic`.
    potential : callable, optional
        Potential energy, a function of ``q t k``, in joules.
    forces : callable, optional
        Forces on the quasi-velocities, with power ``v.f``. They may depend on the multipliers ``lam``, as friction does
        (S002 eq. 6.11).
    velocities : str, sequence of str or int, optional
        Names of the quasi-velocities. Default: ``v_`` and the name of the coordinate.
    kinematics : callable, optional
        Kinematic matrix Z of shape (n, n), a function of ``q k``, for example for angular velocities. Default:
        identity.
    constraints : callable, optional
        Position constraints g: a function of ``q s t k`` that returns a list of residuals.
    auxiliary : str, sequence of str or int, default 0
        Names of the auxiliary variables s, such as contact point coordinates, or their number.
    conditions : callable, optional
        Equations c(q, s) = 0 that determine s for every q, one per auxiliary variable.
    parameters : mapping, optional
        Parameter values by name, available to model functions as ``k``.

    Raises
    ------
    InputError
        If the numbers of velocities and coordinates differ.
    ModelError
        If a model function is invalid or missing.

    Examples
    --------
    >>> import livens as lv
    >>> pendulum = lv.MultibodyEquations(
    ...     "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    ... )
    >>> ggl = pendulum.formulate("ggl")
    >>> run = lv.simulate(ggl, q0=[1.0, 0.0], v0=[0.0, 0.0], scheme="radau-iia-3", h=0.01, t_end=1.0)
    >>> bool(abs(run.x[-1, :2] @ run.x[-1, :2] - 1) < 1e-13)
    True
    """

    def __init__(
        self,
        coordinates: Names,
        *,
        kinetic: Callable[..., Any] | None = None,
        mass: Any = None,
        potential: Callable[..., Any] | None = None,
        forces: Callable[..., Any] | None = None,
        velocities: Names | None = None,
        kinematics: Callable[..., Any] | None = None,
        constraints: Callable[..., Any] | None = None,
        auxiliary: Names = 0,
        conditions: Callable[..., Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.coordinates = names_of("coordinates", coordinates, "q")
        n = self.n = len(self.coordinates)
        default = [f"v_{name}" for name in self.coordinates]
        self.velocities = names_of("velocities", default if velocities is None else velocities, "v")
        self.auxiliary = names_of("auxiliary", auxiliary, "s")
        self.shared = Parameters(parameters)
        self.parameter_table = ParameterTable(self.shared)
        if not n or len(self.velocities) != n:
            raise InputError(f"there must be as many velocities as coordinates, got {len(self.velocities)} and {n}")
        if (kinetic is None) == (mass is None):
            raise ModelError("give either kinetic or mass")
        if bool(self.auxiliary) != (conditions is not None):
            raise ModelError("give auxiliary variables together with as many conditions")
        q, v, s = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("s", len(self.auxiliary))
        t, k = ca.SX.sym("t"), ca.SX.sym("k", self.shared.size)
        read = Reader({"q": q, "v": v, "s": s, "t": t, "k": Namespace(self.shared.symbols(k))})
        if kinetic is None:
            T = ca.dot(v, read("mass", mass, (n, n), "qk") @ v) / 2
        else:
            T = read("kinetic", kinetic, (), "qvk")
        V = ca.SX(0) if potential is None else read("potential", potential, (), "qtk")
        Z = ca.SX.eye(n) if kinematics is None else read("kinematics", kinematics, (n, n), "qk")
        c = ca.SX(0, 1)
        if conditions is not None:
            c = ca.densify(read("conditions", conditions, (len(self.auxiliary),), "qstk"))
        g = ca.SX(0, 1)
        if constraints is not None:
            g = ca.densify(read("constraints", constraints, (None,), "qstk" if self.auxiliary else "qtk"))
        lam, F = ca.SX.sym("lam", g.numel()), ca.SX(n, 1)
        if forces is not None:
            may = [*"qv", *("s" if self.auxiliary else ""), *(["lam"] if g.numel() else []), *"tk"]
            F = read.shaped("forces", read.value("forces", forces, may, lam=lam), (n,))
        self._adopt(q, v, s, t, k, T, V, Z, F, c, g, lam)

    def _adopt(
        self, q: Any, v: Any, s: Any, t: Any, k: Any, T: Any, V: Any, Z: Any, F: Any, c: Any, g: Any, lam: Any
    ) -> None:
        self.q, self.v, self.s, self.t, self.k, self.lam = q, v, s, t, k, lam
        self.T, self.V, self.Z, self.F, self.c, self.g, self.m = T, V, Z, F, c, g, int(g.numel())
        momentum = ca.gradient(T, v)
        self.M = ca.jacobian(momentum, v)
        force = F - Z.T @ ca.gradient(V, q)
        if Z.is_eye():
            force += ca.gradient(T, q) - ca.jtimes(momentum, q, v)
        else:
            # Z^T [d/dt (Z^-T dT/dv) - d/dq T(q, Z^-1 q')], without the term M v'
            rate = ca.SX.sym("rate", self.n)
            canonical = ca.solve(Z.T, momentum)
            kinetic = ca.Function("T", [q, v, k], [T])(q, ca.solve(Z, rate), k)
            turning = ca.substitute(ca.gradient(kinetic, q), rate, Z @ v)
            force += Z.T @ (turning - ca.jtimes(canonical, q, Z @ v))
        self.f = ca.densify(force)

    @classmethod
    def of(cls, system: System) -> MultibodyEquations:
        """Return the multibody equations of a system: ``Z = I`` and no auxiliary variables.

        Parameters
        ----------
        system : System
            Mechanical system with a regular mass matrix, which may depend on q.

        Returns
        -------
        MultibodyEquations
            The equations.

        Raises
        ------
        ModelError
            If the mass matrix is singular.

        Examples
        --------
        >>> import livens as lv
        >>> form = lv.MultibodyEquations.of(lv.problems.load("simple-pendulum").system)
        >>> form.n, form.m
        (2, 1)
        """
        if not system.regular_mass:
            raise ModelError("accelerations need a regular mass matrix; that of the system is singular")
        d = dynamics(system)
        made = cls.__new__(cls)
        made.coordinates, made.n, made.auxiliary = system.coordinates, system.n, ()
        made.velocities = tuple(f"v_{name}" for name in system.coordinates)
        made.shared, made.parameter_table = system.shared, system.parameter_table
        force = d.F - ca.gradient(d.R, d.v)
        made._adopt(
            d.q,
            d.v,
            ca.SX(0, 1),
            d.t,
            d.k,
            d.T,
            d.V,
            ca.SX.eye(system.n),
            force,
            ca.SX(0, 1),
            d.g,
            ca.SX.sym("lam", d.g.numel()),
        )
        return made

    def transformed(self) -> MultibodyEquations:
        """Return the equations with ``w = q' = Z(q) v`` instead of quasi-velocities (S002 eq. 2.22).

        The mass matrix becomes ``Z^-T M Z^-1``, which depends on q even if M is constant. Forces become ``Z^-T f``, and
        constraint forces act along G. The transformation is valid where Z is regular.

        Returns
        -------
        MultibodyEquations
            The transformed equations.

        Examples
        --------
        >>> import livens as lv
        >>> swing = lv.MultibodyEquations("a", mass=[[2.0]], kinematics=lambda q: [[1 + q[0] ** 2]])
        >>> swing.transformed().Z.is_eye()
        True
        """
        made = type(self).__new__(type(self))
        made.coordinates, made.n, made.auxiliary = self.coordinates, self.n, self.auxiliary
        made.velocities = tuple(f"v_{name}" for name in self.coordinates)
        made.shared, made.parameter_table = self.shared, self.parameter_table
        rate = ca.SX.sym("v", self.n)
        T, force = (ca.substitute(part, self.v, ca.solve(self.Z, rate)) for part in (self.T, self.F))
        made._adopt(
            self.q,
            rate,
            self.s,
            self.t,
            self.k,
            T,
            self.V,
            ca.SX.eye(self.n),
            ca.solve(self.Z.T, force),
            self.c,
            self.g,
            self.lam,
        )
        return made

    def index_test(self, q: Any, t: float = 0.0, **changes: Any) -> IndexTest:
        """Return the index test at a configuration: index 3 if ``G Z M^-1 Z^T G^T`` is regular (S002 thm. 2.2).

        Parameters
        ----------
        q : array_like of shape (n,)
            Coordinates; auxiliary variables are computed.
        t : float, default 0.0
            Time, in seconds.
        **changes
            Parameter values that differ from those of the model.

        Returns
        -------
        IndexTest
            Matrix, reciprocal condition number, dependent constraints and index.

        Raises
        ------
        InputError
            If the mass matrix is singular, or the terms cannot be evaluated.

        Examples
        --------
        >>> import livens as lv
        >>> rod = lv.MultibodyEquations("x y", mass=[[2.0, 0.0], [0.0, 2.0]], constraints=lambda q: [(q @ q - 1) / 2])
        >>> found = rod.index_test([0.6, 0.8])
        >>> found.index, found.gamma
        (3, array([[0.5]]))
        >>> print(rod.index_test([0.0, 0.0]))
        Gamma is singular: constraint 0 has no unique multiplier here, so the index is not 3
        """
        where, k = vector("q", q, self.coordinates), self.parameter_table.vector(changes)
        model = Formulation(self, "index-3")
        return index_test(self, where, model._auxiliary_at(where, t, k), t, k)

    # -- hidden constraints -------------------------------------------------------------------------------------------
    @functools.cached_property
    def G(self) -> Any:
        """Constraint Jacobian: total derivative ``g_q - g_s c_s^-1 c_q`` of g with respect to q."""
        G = ca.jacobian(self.g, self.q)
        if self.auxiliary:
            slope = ca.solve(ca.jacobian(self.c, self.s), ca.jacobian(self.c, self.q))
            G -= ca.jacobian(self.g, self.s) @ slope
        return G

    def _total_rate(self, expression: Any) -> Any:
        """Return the total time derivative along q' = Z v for fixed v, with the auxiliary variables eliminated."""
        rate = ca.jtimes(expression, self.q, self.Z @ self.v) + ca.jacobian(expression, self.t)
        if self.auxiliary:
            right = ca.jtimes(self.c, self.q, self.Z @ self.v) + ca.jacobian(self.c, self.t)
            rate -= ca.jtimes(expression, self.s, ca.solve(ca.jacobian(self.c, self.s), right))
        return rate

    @functools.cached_property
    def velocity_constraint(self) -> Any:
        """Hidden constraint ``G Z v + dg/dt`` at velocity level."""
        return ca.densify(self._total_rate(self.g))

    @functools.cached_property
    def acceleration_constraint(self) -> tuple[Any, Any]:
        """A and b of the hidden constraint ``A v' + b = 0`` at acceleration level."""
        return self.G @ self.Z, self._total_rate(self.velocity_constraint)

    def formulate(self, formulation: str = "index-3") -> Formulation:
        """Return a DAE model with x = (q, v) and y = (s, lam), for GGL y = (s, lam, mu).

        Parameters
        ----------
        formulation : str, default "index-3"
            "index-3" imposes g, "index-2" its time derivative, "index-1" its second time derivative. "ggl" imposes g
            and its time derivative, with multipliers mu of ``q' = Z v + G^T mu`` (S002 def. 2.3). "ggl-principle" does
            so by the GGL principle, ``M q' = M v + G^T mu`` and the force ``- sum_k mu_k D^2 g_k v`` (S001 eq. 28). Its
            equations are Hamiltonian and require a constant mass matrix and scleronomic constraints.

        Returns
        -------
        MultibodyDAE
            Model for Runge-Kutta schemes.

        Raises
        ------
        InputError
            If the formulation is unknown.
        ModelError
            If the equations do not satisfy the requirements of "ggl-principle".
        """
        if formulation not in FORMULATIONS:
            raise InputError(f"unknown formulation '{formulation}'{suggestion(str(formulation), FORMULATIONS)}")
        if formulation == "ggl-principle" and (
            ca.depends_on(self.M, ca.vertcat(self.q, self.v))
            or not self.Z.is_eye()
            or self.auxiliary
            or ca.depends_on(self.g, self.t)
        ):
            raise ModelError(
                "the GGL principle needs a constant mass matrix, velocities q', no auxiliary variables and "
                "constraints that do not depend on time; formulation 'ggl' does not"
            )
        return Formulation(self, formulation)


def _with_row(rows: Any, i: int, row: Any) -> Any:
    """Return the residual with row i replaced."""
    changed = ca.SX(ca.densify(rows))
    changed[i] = row
    return changed


class Formulation(DescriptorModel):
    """Multibody DAE of first order in a chosen formulation; see `MultibodyEquations.formulate`."""

    kind = "FirstOrder"

    @property
    def usual_scheme(self) -> str:  # type: ignore[override]  # also without constraints
        return "radau-iia-3"

    def __init__(self, equations: MultibodyEquations, formulation: str, dropped: tuple[int, ...] = ()) -> None:
        self.equations, self.formulation, self.dropped = equations, formulation, dropped
        e = equations
        self.coordinates, self.shared = (*e.coordinates, *e.velocities), e.shared
        self.parameter_table = e.parameter_table
        multipliers = [f"lam[{i}]" for i in range(e.m)]
        multipliers += [f"mu[{i}]" for i in range(e.m)] if formulation in _BOTH_LEVELS else []
        self.algebraic = (*e.auxiliary, *multipliers)
        self.n = len(self.coordinates)

    @functools.cached_property
    def descriptor(self) -> Descriptor:
        e = self.equations
        both = self.formulation in _BOTH_LEVELS
        lam, mu = e.lam, ca.SX.sym("mu", e.m if both else 0)
        q_rate, v_rate = ca.SX.sym("q'", e.n), ca.SX.sym("v'", e.n)
        x = ca.vertcat(e.q, e.v, e.s, lam, mu)
        xdot = ca.vertcat(q_rate, v_rate, ca.SX.sym("y'", len(self.algebraic)))
        drift = e.G.T @ mu if self.formulation == "ggl" else 0
        rows = [q_rate - e.Z @ e.v - drift, e.M @ v_rate - e.f + e.Z.T @ (e.G.T @ lam), e.c]
        if self.formulation == "ggl-principle":
            # M q' = p + G^T mu with the force sum_k mu_k D^2 g_k v
            rows[0] = e.M @ (q_rate - e.v) - e.G.T @ mu
            rows[1] += ca.gradient(ca.dot(mu, e.G @ e.v), e.q)
        if both or self.formulation == "index-3":
            rows.append(e.g)
        if both or self.formulation == "index-2":
            rows.append(e.velocity_constraint)
        if self.formulation == "index-1":
            A, b = e.acceleration_constraint
            rows.append(A @ v_rate + b)
        for i in self.dropped:
            rows[3] = _with_row(rows[3], i, lam[i])
            if both:
                rows[4] = _with_row(rows[4], i, mu[i])
        return Descriptor(x, xdot, e.t, e.k, ca.densify(ca.vertcat(*rows)))

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Multipliers mu of the GGL formulation, which vanish for exact solutions."""
        return tuple(name for name in self.algebraic if name.startswith("mu["))

    @property
    def guards(self) -> Mapping[str, Any]:
        e = self.equations
        if e.Z.is_eye():
            return {}
        words = "the kinematic matrix Z is singular: other angles (another rotation sequence) are needed"
        return {words: 1 / ca.det(e.Z)}

    def looks(self, k: np.ndarray) -> list[Look]:
        """Return default visuals: spheres at coordinates named x and y."""
        return particles(self.coordinates)

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

    def watched_energy(self, conserved: tuple[str, ...]) -> str:
        return "total_energy"

    def magnitude(self) -> Any:
        return self.equations.T

    def watched_constraints(self) -> tuple[Any, Any]:
        return self.equations.g, self.equations.velocity_constraint

    def velocities(self) -> Any:
        return self.equations.v

    def promised(self, scheme: Promising | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a quantity is guaranteed; constraints only at the levels that the formulation imposes."""
        imposed = {"constraint": ("index-3", *_BOTH_LEVELS), "velocity_constraint": ("index-2", *_BOTH_LEVELS)}
        if name not in imposed:
            return super().promised(scheme, name, k)
        return scheme is not None and "constraint" in scheme.conserves and self.formulation in imposed[name]

    def start_from(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        n = self.equations.n
        return {"q0": values["x"][:n], "v0": values["x"][n:]}

    def content(self) -> Sequence[Any]:
        return self.formulation, *((self.dropped,) if self.dropped else ()), *super().content()

    # -- initial state ------------------------------------------------------------------------------------------------
    def start(self, given: Mapping[str, Any], k: np.ndarray, t0: float, project: bool, redundant: str) -> InitialState:
        """Return the initial state for q0 and v0; multipliers of redundant constraints are zero."""
        only(given, ("q0", "v0"), "formulation of a multibody system")
        one_of("redundant", redundant, ("error", "remove", "auto"))
        e = self.equations
        q = vector("q0", given.get("q0"), e.coordinates, "coordinate")
        v = vector("v0", given.get("v0"), e.velocities, "velocity")
        trouble = self.trouble(q, t0, k)
        if trouble:
            raise InputError(f"cannot start at q0: {trouble}")
        if project:
            q, v = self._nearest(q, v, t0, k)
        s = self._auxiliary_at(q, t0, k)
        g, rate, G, M, f, A, b = self._at(q, v, s, t0, k)
        for what, gap, weights in (("position", g, np.abs(G) @ np.abs(q)), ("velocity", rate, np.abs(A) @ np.abs(v))):
            relative = np.abs(gap.ravel()) / (1 + weights)
            if gap.size and not relative.max() <= _TOLERANCE:
                worst = int(np.argmax(relative))
                raise InputError(
                    f"inconsistent initial values: constraint {worst} is violated on {what} level by "
                    f"{gap.ravel()[worst]:.3g}; {self._offered(q, v, t0, k)}"
                )
        dropped = self._redundant(q, A, t0, k)
        if dropped and redundant == "error":
            raise InputError(
                f"constraints are redundant: {', '.join(f'constraint {i}' for i in dropped)} "
                f"follow{'s' if len(dropped) == 1 else ''} from the others; pass redundant='remove' to leave "
                f"{'it' if len(dropped) == 1 else 'them'} out"
            )
        kept = [i for i in range(e.m) if i not in dropped]
        matrix = np.block([[M, A[kept].T], [A[kept], np.zeros((len(kept), len(kept)))]])
        if not np.all(np.isfinite(matrix)):
            raise InputError("the equations cannot be evaluated at q0, v0: the result is not finite")
        lam = np.zeros(e.m)
        lam[kept] = np.linalg.lstsq(matrix, np.concatenate([f.ravel(), -b.ravel()[kept]]), rcond=None)[0][e.n :]
        if self._reacting:
            lam = self._with_reactions(q, v, s, lam, t0, k)
        y = np.concatenate([s, lam, np.zeros(len(self.algebraic) - len(s) - e.m)])
        return InitialState(t0, {"x": np.concatenate([q, v])} | ({"y": y} if self.algebraic else {}), dropped)

    def without(self, dropped: Collection[int]) -> Formulation:
        """Return the model with the equation ``lam_i = 0`` in place of each removed constraint."""
        return Formulation(self.equations, self.formulation, tuple(dropped)) if dropped else self

    def _at(self, q: np.ndarray, v: np.ndarray, s: np.ndarray, t: float, k: np.ndarray) -> list[np.ndarray]:
        """Return g, its time derivative, G, M, f, and A and b of the acceleration-level constraint."""
        return [np.array(value) for value in self._levels(q, v, s, t, k)]

    @functools.cached_property
    def _levels(self) -> ca.Function:
        e = self.equations
        f = ca.substitute(e.f, e.lam, ca.SX.zeros(e.m))
        return ca.Function("at", [e.q, e.v, e.s, e.t, e.k], [e.g, e.velocity_constraint, e.G, e.M, f, *self._level()])

    @functools.cached_property
    def _reacting(self) -> bool:
        """Whether forces depend on the multipliers."""
        return bool(ca.depends_on(self.equations.f, self.equations.lam))

    def _with_reactions(
        self, q: np.ndarray, v: np.ndarray, s: np.ndarray, lam: np.ndarray, t: float, k: np.ndarray
    ) -> np.ndarray:
        """Return the multipliers for forces that depend on them, by Newton's method from the given multipliers."""
        e, (A, b) = self.equations, self._level()
        a = ca.SX.sym("a", e.n)
        rows = ca.vertcat(e.M @ a + A.T @ e.lam - e.f, A @ a + b)
        unknown = ca.vertcat(a, e.lam)
        both = ca.Function("both", [unknown, e.q, e.v, e.s, e.t, e.k], [rows, ca.jacobian(rows, unknown)])
        x = np.concatenate([np.zeros(e.n), lam])
        for _ in range(50):
            value, slope = (np.array(part) for part in both(x, q, v, s, t, k))
            if not np.all(np.isfinite(slope)):
                break
            step = np.linalg.lstsq(slope, value.ravel(), rcond=1e-12)[0]
            x = x - step
            if np.abs(step).max() <= 1e-13 * (1 + np.abs(x).max()):
                return x[e.n :]
        raise InputError(
            "no multipliers were found that fulfil the equations at q0, v0 with forces that depend on them"
        )

    def _nearest(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions on the constraints by Gauss-Newton steps, and the nearest consistent velocities."""
        for _ in range(50):
            g, _, G, *_ = self._at(q, v, self._auxiliary_at(q, t, k), t, k)
            if not g.size or not np.all(np.isfinite(G)):
                return q, v
            step = np.linalg.lstsq(G, g.ravel(), rcond=1e-10)[0]
            q = q - step
            if np.abs(step).max() <= 1e-15 * (1 + np.abs(q).max()):
                break
        _, rate, _, _, _, A, _ = self._at(q, v, self._auxiliary_at(q, t, k), t, k)
        return q, v - np.linalg.lstsq(A, rate.ravel(), rcond=1e-10)[0]

    def _offered(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> str:
        """Return a message with consistent values nearby."""
        near = self._nearest(q, v, t, k)
        if not all(np.all(np.isfinite(part)) for part in near):
            return "no consistent start was found nearby"
        shown = ", ".join(
            f"{name} = {value:.9g}" for name, value in zip(self.coordinates, np.hstack(near), strict=True)
        )
        return f"a consistent start nearby is ({shown}); pass project=True to start there"

    def _redundant(self, q: np.ndarray, A: np.ndarray, t: float, k: np.ndarray) -> tuple[int, ...]:
        """Return the redundant constraints, which are dependent at an offset from the initial position as well."""
        dropped = dependent_rows(A)
        if not dropped:
            return ()
        free = np.linalg.svd(A)[2][np.linalg.matrix_rank(A, tol=1e-9) :]
        way = free.T @ np.random.default_rng(7).standard_normal(len(free))
        if not way.size or not np.abs(way).max() > 0:
            return dropped
        e = self.equations
        Z = np.array(ca.Function("Z", [e.q, e.k], [e.Z])(q, k))
        away, v = self._nearest(q + 0.02 * (1 + np.abs(q).max()) * (Z @ way) / np.abs(way).max(), 0 * q, t, k)
        there = self._at(away, v, self._auxiliary_at(away, t, k), t, k)
        return dependent_rows(there[5]) if np.abs(there[0]).max(initial=0.0) < 1e-8 else dropped

    def _level(self) -> tuple[Any, Any]:
        e = self.equations
        return e.acceleration_constraint if e.m else (ca.SX(0, e.n), ca.SX(0, 1))

    def _auxiliary_at(self, q: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
        """Return s with c(q, s) = 0, by Newton's method from zero."""
        e = self.equations
        s = np.zeros(len(e.auxiliary))
        if not s.size:
            return s
        conditions = ca.Function("c", [e.q, e.s, e.t, e.k], [e.c, ca.jacobian(e.c, e.s)])
        for _ in range(50):
            value, slope = (np.array(part) for part in conditions(q, s, t, k))
            if not np.all(np.isfinite(slope)) or np.linalg.matrix_rank(slope) < s.size:
                raise InputError("the conditions c(q, s) = 0 do not determine the auxiliary variables at q0")
            step = np.linalg.solve(slope, value.ravel())
            s = s - step
            if np.abs(step).max() <= 1e-15 * (1 + np.abs(s).max()):
                return s
        raise InputError("no auxiliary variables were found that fulfil the conditions c(q, s) = 0 at q0")

    def trouble(self, q: np.ndarray, t: float, k: np.ndarray) -> str:
        """Return a message if the kinematic matrix is singular at q, otherwise an empty string."""
        e = self.equations
        if e.Z.is_eye():
            return ""
        Z = np.array(ca.Function("Z", [e.q, e.k], [e.Z])(q, k))
        smallest = 0.0 if not np.all(np.isfinite(Z)) else 1 / np.linalg.cond(Z)
        if smallest > _NEARLY_SINGULAR:
            return ""
        angles = ", ".join(f"{name} = {value:.6g}" for name, value in zip(e.coordinates, q, strict=True))
        return f"the kinematic matrix Z is singular at {angles}; other angles (another rotation sequence) are needed"
