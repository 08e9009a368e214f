"""Multibody equations of motion with quasi-velocities and auxiliary variables, formulated as DAEs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import casadi as ca

from livens.errors import InputError, ModelError, explain_call_errors, suggestion
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters, ParameterTable
from livens.expressions.tracing import FunctionTracer
from livens.models.constraint_regularity import IndexTest, index_test
from livens.models.equations_of_motion import equations_of_motion
from livens.models.multibody_dae import FORMULATIONS, MultibodyDAE
from livens.models.system import System
from livens.types import Expr, ModelFunction
from livens.validation import check_vector


@explain_call_errors
class MultibodyEquations:
    """Multibody equations with quasi-velocities and auxiliary variables (Symank 2025, def. 2.1).

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
        (Symank 2025, eq. 6.11).
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
        kinetic: ModelFunction | None = None,
        mass: Any = None,
        potential: ModelFunction | None = None,
        forces: ModelFunction | None = None,
        velocities: Names | None = None,
        kinematics: ModelFunction | None = None,
        constraints: ModelFunction | None = None,
        auxiliary: Names = 0,
        conditions: ModelFunction | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        self.coordinates = parse_names("coordinates", coordinates, "q")
        n = self.n = len(self.coordinates)
        default = [f"v_{name}" for name in self.coordinates]
        self.velocities = parse_names("velocities", default if velocities is None else velocities, "v")
        self.auxiliary = parse_names("auxiliary", auxiliary, "s")
        self.model_parameters = Parameters(parameters)
        self.parameter_table = ParameterTable(self.model_parameters)
        if not n or len(self.velocities) != n:
            raise InputError(f"there must be as many velocities as coordinates, got {len(self.velocities)} and {n}")
        if (kinetic is None) == (mass is None):
            raise ModelError("give either kinetic or mass")
        if bool(self.auxiliary) != (conditions is not None):
            raise ModelError("give auxiliary variables together with as many conditions")
        q, v, s = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("s", len(self.auxiliary))
        t, k = ca.SX.sym("t"), ca.SX.sym("k", self.model_parameters.size)
        trace = FunctionTracer(
            {"q": q, "v": v, "s": s, "t": t, "k": ParameterNamespace(self.model_parameters.unpack_symbols(k))}
        )
        if kinetic is None:
            T = ca.dot(v, trace("mass", mass, (n, n), "qk") @ v) / 2
        else:
            T = trace("kinetic", kinetic, (), "qvk")
        V = ca.SX(0) if potential is None else trace("potential", potential, (), "qtk")
        Z = ca.SX.eye(n) if kinematics is None else trace("kinematics", kinematics, (n, n), "qk")
        c = ca.SX(0, 1)
        if conditions is not None:
            c = ca.densify(trace("conditions", conditions, (len(self.auxiliary),), "qstk"))
        g = ca.SX(0, 1)
        if constraints is not None:
            g = ca.densify(trace("constraints", constraints, (None,), "qstk" if self.auxiliary else "qtk"))
        lam, F = ca.SX.sym("lam", g.numel()), ca.SX(n, 1)
        if forces is not None:
            arguments = [*"qv", *("s" if self.auxiliary else ""), *(["lam"] if g.numel() else []), *"tk"]
            F = trace.check_shape("forces", trace.trace("forces", forces, arguments, lam=lam), (n,))
        self._initialize(q, v, s, t, k, T, V, Z, F, c, g, lam)

    def _initialize(
        self,
        q: Expr,
        v: Expr,
        s: Expr,
        t: Expr,
        k: Expr,
        T: Expr,
        V: Expr,
        Z: Expr,
        F: Expr,
        c: Expr,
        g: Expr,
        lam: Expr,
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
            q_dot = ca.SX.sym("rate", self.n)
            p_canonical = ca.solve(Z.T, momentum)
            kinetic = ca.Function("T", [q, v, k], [T])(q, ca.solve(Z, q_dot), k)
            dT_dq = ca.substitute(ca.gradient(kinetic, q), q_dot, Z @ v)
            force += Z.T @ (dT_dq - ca.jtimes(p_canonical, q, Z @ v))
        self.f = ca.densify(force)

    @classmethod
    def from_system(cls, system: System) -> MultibodyEquations:
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
        >>> form = lv.MultibodyEquations.from_system(lv.problems.load("simple-pendulum").model)
        >>> form.n, form.m
        (2, 1)
        """
        if not system.regular_mass:
            raise ModelError("accelerations need a regular mass matrix; that of the system is singular")
        d = equations_of_motion(system)
        equations = cls.__new__(cls)
        equations.coordinates, equations.n, equations.auxiliary = system.coordinates, system.n, ()
        equations.velocities = tuple(f"v_{name}" for name in system.coordinates)
        equations.model_parameters, equations.parameter_table = system.model_parameters, system.parameter_table
        force = d.F - ca.gradient(d.R, d.v)
        equations._initialize(
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
        return equations

    def with_coordinate_velocities(self) -> MultibodyEquations:
        """Return the equations with ``w = q' = Z(q) v`` instead of quasi-velocities (Symank 2025, eq. 2.22).

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
        >>> swing.with_coordinate_velocities().Z.is_eye()
        True
        """
        equations = type(self).__new__(type(self))
        equations.coordinates, equations.n, equations.auxiliary = self.coordinates, self.n, self.auxiliary
        equations.velocities = tuple(f"v_{name}" for name in self.coordinates)
        equations.model_parameters, equations.parameter_table = self.model_parameters, self.parameter_table
        q_dot = ca.SX.sym("v", self.n)
        T, force = (ca.substitute(part, self.v, ca.solve(self.Z, q_dot)) for part in (self.T, self.F))
        equations._initialize(
            self.q,
            q_dot,
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
        return equations

    def index_test(self, q: object, t: float = 0.0, **changes: object) -> IndexTest:
        """Return the index test at a configuration: index 3 if ``G Z M^-1 Z^T G^T`` is regular (Symank 2025, thm. 2.2).

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
        position, k = check_vector("q", q, self.coordinates), self.parameter_table.vector(changes)
        model = MultibodyDAE(self, "index-3")
        return index_test(self, position, model._solve_auxiliary(position, t, k), t, k)

    # -- hidden constraints -------------------------------------------------------------------------------------------
    @functools.cached_property
    def G(self) -> Expr:
        """Constraint Jacobian: total derivative ``g_q - g_s c_s^-1 c_q`` of g with respect to q."""
        G = ca.jacobian(self.g, self.q)
        if self.auxiliary:
            ds_dq = ca.solve(ca.jacobian(self.c, self.s), ca.jacobian(self.c, self.q))
            G -= ca.jacobian(self.g, self.s) @ ds_dq
        return G

    def _total_derivative(self, expression: Expr) -> Expr:
        """Return the total time derivative along q' = Z v for fixed v, with the auxiliary variables eliminated."""
        derivative = ca.jtimes(expression, self.q, self.Z @ self.v) + ca.jacobian(expression, self.t)
        if self.auxiliary:
            rhs = ca.jtimes(self.c, self.q, self.Z @ self.v) + ca.jacobian(self.c, self.t)
            derivative -= ca.jtimes(expression, self.s, ca.solve(ca.jacobian(self.c, self.s), rhs))
        return derivative

    @functools.cached_property
    def velocity_constraint(self) -> Expr:
        """Hidden constraint ``G Z v + dg/dt`` at velocity level."""
        return ca.densify(self._total_derivative(self.g))

    @functools.cached_property
    def acceleration_constraint(self) -> tuple[Expr, Expr]:
        """A and b of the hidden constraint ``A v' + b = 0`` at acceleration level."""
        return self.G @ self.Z, self._total_derivative(self.velocity_constraint)

    def formulate(self, formulation: str = "index-3") -> MultibodyDAE:
        """Return a DAE model with x = (q, v) and y = (s, lam), for GGL y = (s, lam, mu).

        Parameters
        ----------
        formulation : str, default "index-3"
            "index-3" imposes g, "index-2" its time derivative, "index-1" its second time derivative. "ggl" imposes g
            and its time derivative, with multipliers mu of ``q' = Z v + G^T mu`` (Symank 2025, def. 2.3).
            "ggl-principle" does so by the GGL principle, ``M q' = M v + G^T mu`` and the force ``- sum_k mu_k D^2 g_k
            v`` (Kinon et al. 2023, eq. 28). Its equations are Hamiltonian and require a constant mass matrix and
            scleronomic constraints.

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
        return MultibodyDAE(self, formulation)
