"""Mechanical systems in Hamiltonian form: coordinates, momenta and a Hamiltonian."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters, ParameterTable
from livens.expressions.probe import Probe
from livens.expressions.tracing import FunctionTracer, ModelFunction
from livens.models.base import serialize_expressions
from livens.models.external_force import ExternalForce
from livens.models.hamiltonian.phase_space import PhaseSpaceModel
from livens.models.symmetry import trace_generator
from livens.models.system import System
from livens.scene.scene import Visual, default_visuals
from livens.types import ArrayLike, Expr
from livens.validation import check_number, check_vector


@explain_call_errors
@dataclass(frozen=True)
class Force:
    """Force of a Hamiltonian system with hints for splitting schemes (Modin 2009, 4.2).

    Parameters
    ----------
    function : callable or ExternalForce
        Function of any of ``q v t k`` that returns one value per coordinate. For a conservative force: its potential, a
        function of ``q t k``. An expensive force may be compiled, see `livens.ExternalForce`.
    expensive : bool, default False
        Schemes that split by cost, such as `semi-explicit`, evaluate the force once per step and never differentiate it
        twice.
    conservative : bool, default False
        Whether `function` is the potential of the force.
    beta : float, optional
        Implicitness of a cheap force in [0, 1]: 0.8 damps penalty forces, 1/2 preserves the energy of elastic forces.
        Default: chosen by the scheme.

    Raises
    ------
    InputError
        If `beta` is not in [0, 1], or is given for an expensive force.

    Examples
    --------
    >>> import livens as lv
    >>> stiff = lv.Force(lambda q: 1e6 * (q[0] - q[1]) ** 2, conservative=True, beta=0.8)
    >>> soft = lv.Force(lambda q: q[0] ** 2, conservative=True, beta=0.5)
    >>> pair = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, forces=[stiff, soft])
    >>> sorted(beta for beta in pair.terms.by_beta if beta)
    [0.5, 0.8]
    """

    function: ModelFunction | ExternalForce
    expensive: bool = False
    conservative: bool = False
    beta: float | None = None

    def __post_init__(self) -> None:
        if self.beta is None:
            return
        if not 0 <= check_number("beta of a force", self.beta, allow_strings=False) <= 1:
            raise InputError(f"beta of a force must be between 0 and 1, got {self.beta!r}")
        if self.expensive:
            raise InputError("beta is the implicitness of a cheap force; an expensive force is evaluated explicitly")


@dataclass(frozen=True, eq=False)
class HamiltonianTerms:
    """Terms of a Hamiltonian as expressions; T and V_cheap are None if H is not a sum T(p) + V(q).

    Potentials and forces of expensive forces are separate: ``explicit_force = -grad V_expensive + F_expensive``.
    """

    q: Any
    p: Any
    v: Any
    t: Any
    k: Any
    H: Any
    T: Any
    V_cheap: Any
    V_expensive: Any
    F_cheap: Any
    F_expensive: Any
    #: Compiled expensive force, added to F_expensive by schemes that accept it.
    external_force: ExternalForce | None = None
    #: Potentials and forces of cheap forces by beta, if some have one; None is the key of the others. Their sums are
    #: V_cheap and F_cheap.
    by_beta: Mapping[float | None, tuple[Any, Any]] = field(default_factory=dict)


@explain_call_errors
class Hamiltonian(PhaseSpaceModel):
    """Hamiltonian system ``q' = dH/dp``, ``p' = -dH/dq + F`` with ``H = T(p) + V(q)`` or a general ``H(q, p)``.

    Parameters
    ----------
    coordinates : str, sequence of str or int
        Names of the coordinates, or their number.
    kinetic : callable, optional
        Kinetic energy T, a function of ``p k``, in joules.
    potential : callable, optional
        Potential energy V, a function of ``q t k``, in joules.
    hamiltonian : callable, optional
        Hamiltonian H, a function of ``q p t k``, instead of `kinetic` and `potential`.
    forces : callable, Force or sequence, default ()
        Generalized forces: functions of ``q v t k`` with the velocity v = dH/dp, or `Force` objects.
    parameters : mapping, optional
        Parameter values by name, available to model functions as ``k``.
    symmetries : mapping of str to callable, optional
        Generators of momentum maps by name, as for `System`.
    visual : callable, optional
        Function of ``q t k`` that returns shapes, see `livens.shapes`.

    Raises
    ------
    InputError
        If there is no coordinate.
    ModelError
        If a model function is invalid, or H does not depend on the momenta.

    Examples
    --------
    >>> import livens as lv
    >>> kepler = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / lv.math.norm(q))
    >>> print(kepler)
    Hamiltonian with 2 coordinates (x y)
      separable        yes
      kinetic energy   quadratic
      reversible       yes
      conservative     yes
    >>> kepler.energy(q=[1.0, 0.0], p=[0.0, 1.0])
    -0.5
    """

    def __init__(
        self,
        coordinates: Names,
        *,
        kinetic: ModelFunction | None = None,
        potential: ModelFunction | None = None,
        hamiltonian: ModelFunction | None = None,
        forces: ModelFunction | Force | Sequence[ModelFunction | Force] = (),
        parameters: Mapping[str, object] | None = None,
        symmetries: Mapping[str, ModelFunction] | None = None,
        visual: ModelFunction | None = None,
    ) -> None:
        names, shared = parse_names("coordinates", coordinates, "q"), Parameters(parameters)
        n = len(names)
        if n == 0:
            raise InputError("a Hamiltonian system needs at least one coordinate")
        if (hamiltonian is None) == (kinetic is None) or (hamiltonian is not None and potential is not None):
            raise ModelError("give either kinetic, and potential if there is one, or hamiltonian")
        q, p, v = (ca.SX.sym(name, n) for name in "qpv")
        t, k = ca.SX.sym("t"), ca.SX.sym("k", shared.size)
        trace = FunctionTracer({"q": q, "p": p, "v": v, "t": t, "k": ParameterNamespace(shared.unpack_symbols(k))})
        T = None if kinetic is None else trace("kinetic", _check_callable("kinetic", kinetic), (), "pk")
        V = ca.SX(0) if potential is None else trace("potential", _check_callable("potential", potential), (), "qtk")
        H = trace("hamiltonian", _check_callable("hamiltonian", hamiltonian), (), "qptk") if T is None else T + V
        if not ca.depends_on(H, p):
            raise ModelError("the energy does not depend on the momenta, so nothing moves")
        potentials, vectors = [ca.SX(0), ca.SX(0)], [ca.SX.zeros(n), ca.SX.zeros(n)]
        force_list, external_force = forces if isinstance(forces, Sequence) else [forces], None
        by_beta: dict[float | None, tuple[Any, Any]] = {None: (V, ca.SX.zeros(n))}
        for i, force in enumerate(f if isinstance(f, Force) else Force(f) for f in force_list):
            role = f"force {i}" if len(force_list) > 1 else "force"
            if isinstance(force.function, ExternalForce):
                if force.conservative or not force.expensive or external_force is not None:
                    raise ModelError(
                        "an external force is an expensive force without a potential, and a model has at most one"
                    )
                external_force = force.function
                continue
            function = _check_callable(role, force.function)
            V_force, F_force = ca.SX(0), ca.SX.zeros(n)
            if force.conservative:
                V_force = trace(f"potential of the conservative {role}", function, (), "qtk")
            else:
                F_force = trace(role, function, (n,), "qvtk")
            potentials[force.expensive] += V_force
            vectors[force.expensive] += F_force
            if not force.expensive:
                previous = by_beta.get(force.beta, (ca.SX(0), ca.SX.zeros(n)))
                by_beta[force.beta] = previous[0] + V_force, previous[1] + F_force
        V_cheap = None if T is None else V + potentials[0]
        terms_by_beta = by_beta if len(by_beta) > 1 else {}
        total = H + sum(potentials)
        terms = HamiltonianTerms(
            q, p, v, t, k, total, T, V_cheap, potentials[1], vectors[0], vectors[1], external_force, terms_by_beta
        )
        generators = {name: trace_generator(name, f, n) for name, f in (symmetries or {}).items()}
        self._initialize(
            names,
            ParameterTable(shared),
            terms,
            generators,
            None,
            _check_callable("visual", visual) if visual else None,
        )

    def _initialize(
        self,
        names: Sequence[str],
        parameters: ParameterTable,
        terms: HamiltonianTerms,
        symmetries: dict[str, Any],
        source: System | None,
        visual: ModelFunction | None = None,
    ) -> None:
        self.coordinates, self.n = tuple(names), len(names)
        self.model_parameters, self.parameter_table = parameters.model_parameters, parameters
        self.terms = terms
        self.q, self.p, self.v, self.t, self.k = terms.q, terms.p, terms.v, terms.t, terms.k
        self.H, self.T = terms.H, terms.T
        self.V = None if terms.V_cheap is None else terms.V_cheap + terms.V_expensive
        self.F = terms.F_cheap + terms.F_expensive
        self.external_force = terms.external_force
        self.symmetries = symmetries
        #: Originating system of a Legendre transformation, if any.
        self.source_system = source
        self._visual = visual

    # -- Legendre transformation --------------------------------------------------------------------------------------
    @classmethod
    def from_system(cls, system: System, expensive: Sequence[str] = ()) -> Hamiltonian:
        """Return the Hamiltonian form of a system: ``H = p.M^-1 p/2 + V`` for ``T = v.M v/2``.

        The result is separable if the mass matrix is constant.

        Parameters
        ----------
        system : System
            Unconstrained system with a regular mass matrix.
        expensive : sequence of str, default ()
            Names of elements whose forces are expensive, in addition to the elements that declare it.

        Returns
        -------
        Hamiltonian
            The equivalent Hamiltonian system.

        Raises
        ------
        ModelError
            If the system has constraints, a singular mass matrix, or T is not quadratic in v.

        Examples
        --------
        >>> import livens as lv
        >>> pendulum = lv.System("theta", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: -lv.math.cos(q[0]))
        >>> lv.Hamiltonian.from_system(pendulum).separable
        True
        """
        from livens.models.hamiltonian.legendre import from_system  # circular import

        model = cls.__new__(cls)
        terms = from_system(system, expensive)
        model._initialize(system.coordinates, system.parameter_table, terms, dict(system.symmetries), system)
        return model

    def to_system(self) -> System:
        """Return the Lagrangian (Livens) form of the system, for H quadratic in the momenta.

        Returns
        -------
        System
            The equivalent mechanical system.

        Raises
        ------
        ModelError
            If H is not quadratic in the momenta, or ``d2H/dp2`` is singular or depends on time.

        Examples
        --------
        >>> import livens as lv
        >>> free = lv.Hamiltonian("x", kinetic=lambda p, k: p[0] ** 2 / (2 * k.mass), parameters=dict(mass=3.0))
        >>> free.to_system().constant_mass
        True
        """
        from livens.models.hamiltonian.legendre import to_system  # circular import

        return to_system(self)

    # -- vector field -------------------------------------------------------------------------------------------------
    @functools.cached_property
    def velocity(self) -> Expr:
        """Velocity ``q' = dH/dp``."""
        return ca.densify(ca.gradient(self.H, self.p))

    @functools.cached_property
    def momentum_rate(self) -> Expr:
        """Time derivative of the momenta, ``p' = -dH/dq + F``."""
        force = ca.substitute(self.F, self.v, self.velocity)
        return ca.densify(force - ca.gradient(self.H, self.q))

    @functools.cached_property
    def vector_field(self) -> Expr:
        """Hamiltonian vector field ``(q', p')``."""
        return ca.vertcat(self.velocity, self.momentum_rate)

    @functools.cached_property
    def explicit_force(self) -> Expr:
        """Sum A of the expensive forces, treated explicitly: a function of q, v, t, k (Modin 2009, paper V, eq. 2)."""
        return ca.densify(self.terms.F_expensive - ca.gradient(self.terms.V_expensive, self.q))

    @functools.cached_property
    def implicit_force(self) -> Expr:
        """Sum B of the cheap forces, treated implicitly: ``p' = A + B`` (Modin 2009, paper V, eq. 2)."""
        if self.terms.V_cheap is None:
            raise ModelError("forces can be split by cost only if H is given as kinetic and potential energy")
        return ca.densify(self.terms.F_cheap - ca.gradient(self.terms.V_cheap, self.q))

    def bracket(self, f: Expr, g: Expr) -> Expr:
        """Return the Poisson bracket ``f_q.g_p - f_p.g_q``; ``{f, H}`` is the time derivative of f.

        Parameters
        ----------
        f, g : casadi.SX
            Expressions of q and p.

        Returns
        -------
        casadi.SX
            The bracket ``{f, g}``.
        """
        return ca.dot(ca.gradient(f, self.q), ca.gradient(g, self.p)) - ca.dot(
            ca.gradient(f, self.p), ca.gradient(g, self.q)
        )

    def function(self, expression: Expr) -> ca.Function:
        """Return a CasADi function of (q, p, t, k) for an expression of the model's symbols.

        Parameters
        ----------
        expression : casadi.SX
            Expression of q, p, v, t and k.

        Returns
        -------
        casadi.Function
            Function of (q, p, t, k).
        """
        return ca.Function(
            "f", [self.q, self.p, self.t, self.k], [ca.substitute(ca.SX(expression), self.v, self.velocity)]
        )

    def energy(self, q: ArrayLike, p: ArrayLike, t: float = 0.0, **changes: Any) -> float:
        """Return the value of H in a state.

        Parameters
        ----------
        q, p : array_like of shape (n,)
            Coordinates and momenta.
        t : float, default 0.0
            Time, in seconds.
        **changes
            Parameter values that differ from those of the model.

        Returns
        -------
        float
            Energy.
        """
        state = check_vector("q", q, self.coordinates), check_vector("p", p, self.coordinates)
        return float(self.function(self.H)(*state, t, self.parameter_vector(changes)))

    def momenta(self, q: ArrayLike, v: ArrayLike, t: float = 0.0, **changes: object) -> np.ndarray:
        """Return the momenta of given velocities, for H quadratic in the momenta.

        Parameters
        ----------
        q, v : array_like of shape (n,)
            Coordinates and velocities.
        t : float, default 0.0
            Time, in seconds.
        **changes
            Parameter values that differ from those of the model.

        Returns
        -------
        ndarray of shape (n,)
            Momenta.

        Raises
        ------
        ModelError
            If H is not quadratic in the momenta.

        Examples
        --------
        >>> import livens as lv
        >>> lv.Hamiltonian("x", hamiltonian=lambda q, p: p[0] ** 2 / 6 + q[0] ** 2).momenta(q=[1.0], v=[2.0])
        array([6.])
        """
        state = check_vector("q", q, self.coordinates), check_vector("v", v, self.coordinates)
        return self._momenta(*state, t, self.parameter_vector(changes))

    def _momenta(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
        """Return the momenta as `momenta`, without checks of the arguments."""
        if not self.is_quadratic_in_p:
            raise ModelError("momenta follow from velocities only if H is quadratic in the momenta")
        matrix, offset = (
            np.array(self.function(e)(q, np.zeros(self.n), t, k))
            for e in (ca.jacobian(self.velocity, self.p), self.velocity)
        )
        return np.asarray(np.linalg.solve(matrix, v - offset.ravel()))

    # -- properties ---------------------------------------------------------------------------------------------------
    @property
    def separable(self) -> bool:
        """True if H is given as T(p) + V(q)."""
        return self.T is not None

    @functools.cached_property
    def is_quadratic_in_p(self) -> bool:
        """True if H is at most quadratic in the momenta."""
        return not ca.depends_on(ca.jacobian(self.velocity, self.p), self.p)

    @functools.cached_property
    def inverse_mass(self) -> Any:
        """Inverse of a constant mass matrix, ``d2T/dp2`` as a function of k; None if it is not constant."""
        matrix = ca.jacobian(self.velocity, self.p)
        return None if ca.depends_on(matrix, ca.vertcat(self.q, self.p, self.t)) else matrix

    @functools.cached_property
    def autonomous(self) -> bool:
        """True if H and the forces do not depend on time explicitly."""
        return self.external_force is None and not ca.depends_on(ca.vertcat(self.H, self.F), self.t)

    @functools.cached_property
    def conservative(self) -> bool:
        """True if there are no forces in addition to H, and no time dependence."""
        return self.autonomous and self.F.is_zero()

    @functools.cached_property
    def reversible(self) -> bool:
        """True if the motion is time-reversible: ``H(q, -p) = H(q, p)``, and F is even in p."""
        if not self.autonomous:
            return False
        forward = ca.vertcat(self.H, ca.substitute(self.F, self.v, self.velocity))
        reversed_ = ca.substitute(forward, self.p, -self.p)
        probe = Probe([self.q, self.p, self.k], seed=2, fixed={2: self.parameter_vector()})
        return probe.is_zero(forward - reversed_, 1 + ca.fabs(forward)) is True

    def visuals(self, k: np.ndarray) -> list[Visual]:
        """Return the visual of the model or of its originating system; spheres by default."""
        if self.source_system is not None:
            return self.source_system.visuals(k)
        if self._visual is None:
            return default_visuals(self.coordinates)
        return [Visual(self._visual, range(self.n), self.model_parameters.unpack(k[: self.model_parameters.size]))]

    def fingerprint_data(self) -> Sequence[object]:
        all_terms = {
            name: term for name, term in vars(self.terms).items() if name not in [*"qpvtk", "external_force", "by_beta"]
        }
        terms = {name: term for name, term in all_terms.items() if term is not None}
        symbols = [self.q, self.p, self.v, self.t, self.k]
        symmetries = [generator.serialize() for generator in self.symmetries.values()]
        source = "" if self.source_system is None else self.source_system.fingerprint
        compiled = () if self.external_force is None else tuple(self.external_force.fingerprint_data())
        beta_terms = [
            (beta, serialize_expressions(symbols, [ca.SX(x) for x in potential_and_force]))
            for beta, potential_and_force in self.terms.by_beta.items()
        ]
        data = (list(terms), serialize_expressions(symbols, list(terms.values())), symmetries, source, *compiled)
        return (*data, beta_terms) if beta_terms else data

    def __str__(self) -> str:
        lines = [f"Hamiltonian with {self.n} coordinate{'s' if self.n != 1 else ''} ({' '.join(self.coordinates)})"]
        for label, value in {
            "separable": "yes" if self.separable else "no",
            "kinetic energy": "quadratic" if self.is_quadratic_in_p else "not quadratic",
            "reversible": "yes" if self.reversible else "no",
            "conservative": "yes" if self.conservative else "no",
            "symmetries": ", ".join(self.symmetries),
            "parameters": ", ".join(f"{name} = {value}" for name, value in self.model_parameters.to_python().items()),
        }.items():
            lines += [f"  {label:<17}{value}"] if value else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<livens.Hamiltonian: coordinates {' '.join(self.coordinates)}>"


def _check_callable(role: str, function: object) -> ModelFunction:
    if not callable(function):
        raise ModelError(f"{role} must be a function, got {function!r}")
    return function
