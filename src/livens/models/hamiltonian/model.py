"""A mechanical system in Hamilton's form: coordinates, momenta and one energy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError
from livens.expressions.names import Names, names_of
from livens.expressions.numbers import number, vector
from livens.expressions.parameters import Namespace, Parameters, ParameterTable
from livens.expressions.probe import Probe
from livens.expressions.read import ModelFunction, Reader
from livens.models.black_box import BlackBox
from livens.models.hamiltonian.phase_space import PhaseSpaceModel
from livens.models.model import serialized
from livens.models.scene import Look, particles
from livens.models.symmetry import momentum_generator
from livens.models.system import System


@dataclass(frozen=True)
class Force:
    """A force, and what a scheme may know about it (S003 4.2).

    `function` names what it needs among ``q v t k`` and returns one number per coordinate. A `conservative` force is
    given by its potential instead: a function of ``q t k`` that returns one number. Schemes that split by cost, such as
    `semi-explicit`, evaluate an `expensive` force once per step and never differentiate it twice. An expensive force
    may be compiled elsewhere: see `livens.BlackBox`. A cheap force may say at which part `beta` of a step these schemes
    take it, if not where the scheme says: 0.8 for penalties, which are to be damped, 1/2 for elasticity, which is not.

    >>> import livens as lv
    >>> stiff = lv.Force(lambda q: 1e6 * (q[0] - q[1]) ** 2, conservative=True, beta=0.8)
    >>> soft = lv.Force(lambda q: q[0] ** 2, conservative=True, beta=0.5)
    >>> pair = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, forces=[stiff, soft])
    >>> sorted(beta for beta in pair.terms.by_beta if beta)
    [0.5, 0.8]
    """

    function: ModelFunction | BlackBox
    expensive: bool = False
    conservative: bool = False
    beta: float | None = None

    def __post_init__(self) -> None:
        if self.beta is None:
            return
        if not 0 <= number("beta of a force", self.beta, text=False) <= 1:
            raise InputError(f"beta of a force must be between 0 and 1, got {self.beta!r}")
        if self.expensive:
            raise InputError("beta says where in a step a cheap force is taken; an expensive one is taken ahead")


@dataclass(frozen=True, eq=False)
class Terms:
    """What a Hamiltonian consists of, as expressions of its symbols; T and V_cheap are None if H is no such sum.

    The potentials and forces of expensive forces are kept apart: ``A = -grad V_expensive + F_expensive``.
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
    #: An expensive force that is compiled elsewhere, added to F_expensive by schemes that can.
    box: BlackBox | None = None
    #: If cheap forces say where in a step they are taken: potential and force without one, for each such beta, and
    #: under None for those that do not say. Their sums are V_cheap and F_cheap.
    by_beta: Mapping[float | None, tuple[Any, Any]] = field(default_factory=dict)


class Hamiltonian(PhaseSpaceModel):
    """``q' = dH/dp``, ``p' = -dH/dq + F``, given by ``H = T(p) + V(q)`` with any T, or by any ``H(q, p)``.

    `kinetic` is a function of ``p k``, `potential` of ``q t k``, `hamiltonian` (instead of both) of ``q p t k``: each
    names what it needs. `forces` are functions of ``q v t k`` (v is the velocity dH/dp), or `Force` objects that say
    more. `symmetries` and `look` are those of a `System`.

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
        parameters: Mapping[str, Any] | None = None,
        symmetries: Mapping[str, Callable[..., Any]] | None = None,
        look: ModelFunction | None = None,
    ) -> None:
        names, shared = names_of("coordinates", coordinates, "q"), Parameters(parameters)
        n = len(names)
        if n == 0:
            raise InputError("a Hamiltonian system needs at least one coordinate")
        if (hamiltonian is None) == (kinetic is None) or (hamiltonian is not None and potential is not None):
            raise ModelError("give either kinetic, and potential if there is one, or hamiltonian")
        q, p, v = (ca.SX.sym(name, n) for name in "qpv")
        t, k = ca.SX.sym("t"), ca.SX.sym("k", shared.size)
        read = Reader({"q": q, "p": p, "v": v, "t": t, "k": Namespace(shared.symbols(k))})
        T = None if kinetic is None else read("kinetic", _function("kinetic", kinetic), (), "pk")
        V = ca.SX(0) if potential is None else read("potential", _function("potential", potential), (), "qtk")
        H = read("hamiltonian", _function("hamiltonian", hamiltonian), (), "qptk") if T is None else T + V
        if not ca.depends_on(H, p):
            raise ModelError("the energy does not depend on the momenta, so nothing moves")
        potentials, vectors = [ca.SX(0), ca.SX(0)], [ca.SX.zeros(n), ca.SX.zeros(n)]
        given, box = forces if isinstance(forces, Sequence) else [forces], None
        by_beta: dict[float | None, tuple[Any, Any]] = {None: (V, ca.SX.zeros(n))}
        for i, force in enumerate(f if isinstance(f, Force) else Force(f) for f in given):
            role = f"force {i}" if len(given) > 1 else "force"
            if isinstance(force.function, BlackBox):
                if force.conservative or not force.expensive or box is not None:
                    raise ModelError(
                        "a black box is an expensive force without a potential, and a model has one at most"
                    )
                box = force.function
                continue
            function = _function(role, force.function)
            V_own, F_own = ca.SX(0), ca.SX.zeros(n)
            if force.conservative:
                V_own = read(f"potential of the conservative {role}", function, (), "qtk")
            else:
                F_own = read(role, function, (n,), "qvtk")
            potentials[force.expensive] += V_own
            vectors[force.expensive] += F_own
            if not force.expensive:
                known = by_beta.get(force.beta, (ca.SX(0), ca.SX.zeros(n)))
                by_beta[force.beta] = known[0] + V_own, known[1] + F_own
        cheap = None if T is None else V + potentials[0]
        said = by_beta if len(by_beta) > 1 else {}
        total = H + sum(potentials)
        terms = Terms(q, p, v, t, k, total, T, cheap, potentials[1], vectors[0], vectors[1], box, said)
        generators = {name: momentum_generator(name, f, n) for name, f in (symmetries or {}).items()}
        self._adopt(names, ParameterTable(shared), terms, generators, None, _function("look", look) if look else None)

    def _adopt(
        self,
        names: Sequence[str],
        parameters: ParameterTable,
        terms: Terms,
        symmetries: dict[str, Any],
        source: System | None,
        look: ModelFunction | None = None,
    ) -> None:
        self.coordinates, self.n = tuple(names), len(names)
        self.shared, self.parameter_table = parameters.shared, parameters
        self.terms = terms
        self.q, self.p, self.v, self.t, self.k = terms.q, terms.p, terms.v, terms.t, terms.k
        self.H, self.T = terms.H, terms.T
        self.V = None if terms.V_cheap is None else terms.V_cheap + terms.V_expensive
        self.F = terms.F_cheap + terms.F_expensive
        self.box = terms.box
        self.symmetries = symmetries
        #: The system this was made of, if it was.
        self.source = source
        self._look = look

    # -- from and to Livens form --------------------------------------------------------------------------------------
    @classmethod
    def of(cls, system: System, expensive: Sequence[str] = ()) -> Hamiltonian:
        """The same motion in Hamilton's form: ``H = p.M^-1 p/2 + V`` for ``T = v.M v/2``.

        That needs a regular mass matrix and no constraints. With a constant mass matrix the result is separable.
        `expensive` names elements whose forces are expensive; elements that say so themselves need not be named.

        >>> import livens as lv
        >>> pendulum = lv.System("theta", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: -lv.math.cos(q[0]))
        >>> lv.Hamiltonian.of(pendulum).separable
        True
        """
        from livens.models.hamiltonian.conversion import from_system  # it needs this class

        made = cls.__new__(cls)
        terms = from_system(system, expensive)
        made._adopt(system.coordinates, system.parameter_table, terms, dict(system.symmetries), system)
        return made

    def system(self) -> System:
        """The same motion in Livens form, if H is quadratic in the momenta.

        >>> import livens as lv
        >>> free = lv.Hamiltonian("x", kinetic=lambda p, k: p[0] ** 2 / (2 * k.mass), parameters=dict(mass=3.0))
        >>> free.system().constant_mass
        True
        """
        from livens.models.hamiltonian.conversion import to_system  # it needs this class

        return to_system(self)

    # -- what follows from H ------------------------------------------------------------------------------------------
    @functools.cached_property
    def velocity(self) -> Any:
        """``q' = dH/dp``."""
        return ca.densify(ca.gradient(self.H, self.p))

    @functools.cached_property
    def momentum_rate(self) -> Any:
        """``p' = -dH/dq + F``."""
        force = ca.substitute(self.F, self.v, self.velocity)
        return ca.densify(force - ca.gradient(self.H, self.q))

    @functools.cached_property
    def field(self) -> Any:
        """``(q', p')``."""
        return ca.vertcat(self.velocity, self.momentum_rate)

    @functools.cached_property
    def A(self) -> Any:
        """The sum of the expensive forces, of q, v, t and k (S003 paper V, eq. 2)."""
        return ca.densify(self.terms.F_expensive - ca.gradient(self.terms.V_expensive, self.q))

    @functools.cached_property
    def B(self) -> Any:
        """All other forces, of q, v, t and k: ``p' = A + B`` (S003 paper V, eq. 2)."""
        if self.terms.V_cheap is None:
            raise ModelError("forces can be told apart only if H is given as kinetic and potential energy")
        return ca.densify(self.terms.F_cheap - ca.gradient(self.terms.V_cheap, self.q))

    def bracket(self, f: Any, g: Any) -> Any:
        """Poisson's bracket ``f_q.g_p - f_p.g_q`` of two expressions of q and p: ``{f, H}`` is the rate of f."""
        return ca.dot(ca.gradient(f, self.q), ca.gradient(g, self.p)) - ca.dot(
            ca.gradient(f, self.p), ca.gradient(g, self.q)
        )

    def function(self, expression: Any) -> ca.Function:
        """Any expression of this object's symbols as a function of (q, p, t, k)."""
        return ca.Function(
            "f", [self.q, self.p, self.t, self.k], [ca.substitute(ca.SX(expression), self.v, self.velocity)]
        )

    def energy(self, q: Any, p: Any, t: float = 0.0, **changes: Any) -> float:
        """The value of H in a state."""
        state = vector("q", q, self.coordinates), vector("p", p, self.coordinates)
        return float(self.function(self.H)(*state, t, self.parameter_vector(changes)))

    def momenta(self, q: Any, v: Any, t: float = 0.0, **changes: Any) -> np.ndarray:
        """The momenta that belong to velocities, if H is quadratic in the momenta.

        >>> import livens as lv
        >>> lv.Hamiltonian("x", hamiltonian=lambda q, p: p[0] ** 2 / 6 + q[0] ** 2).momenta(q=[1.0], v=[2.0])
        array([6.])
        """
        state = vector("q", q, self.coordinates), vector("v", v, self.coordinates)
        return self.momenta_of(*state, t, self.parameter_vector(changes))

    def momenta_of(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
        """As `momenta`, for numbers that are known to be right."""
        if not self.quadratic:
            raise ModelError("momenta follow from velocities only if H is quadratic in the momenta")
        matrix, offset = (
            np.array(self.function(e)(q, np.zeros(self.n), t, k))
            for e in (ca.jacobian(self.velocity, self.p), self.velocity)
        )
        return np.asarray(np.linalg.solve(matrix, v - offset.ravel()))

    # -- properties ---------------------------------------------------------------------------------------------------
    @property
    def separable(self) -> bool:
        """H is given as the sum of a kinetic energy T(p) and a potential energy V(q)."""
        return self.T is not None

    @functools.cached_property
    def quadratic(self) -> bool:
        """H is at most quadratic in the momenta."""
        return not ca.depends_on(ca.jacobian(self.velocity, self.p), self.p)

    @functools.cached_property
    def inverse_mass(self) -> Any:
        """``d2T/dp2``, of the parameters alone, or None: the inverse of a constant mass matrix."""
        matrix = ca.jacobian(self.velocity, self.p)
        return None if ca.depends_on(matrix, ca.vertcat(self.q, self.p, self.t)) else matrix

    @functools.cached_property
    def autonomous(self) -> bool:
        """Nothing depends on time."""
        return self.box is None and not ca.depends_on(ca.vertcat(self.H, self.F), self.t)

    @functools.cached_property
    def conservative(self) -> bool:
        """No forces but those of the energy, nothing depends on time."""
        return self.autonomous and self.F.is_zero()

    @functools.cached_property
    def reversible(self) -> bool:
        """Turning all momenta around turns the motion around: ``H(q, -p) = H(q, p)``, and the same for the forces."""
        if not self.autonomous:
            return False
        there = ca.vertcat(self.H, ca.substitute(self.F, self.v, self.velocity))
        back = ca.substitute(there, self.p, -self.p)
        probe = Probe([self.q, self.p, self.k], seed=2, given={2: self.parameter_vector()})
        return probe.vanishes(there - back, 1 + ca.fabs(there)) is True

    def looks(self, k: np.ndarray) -> list[Look]:
        """What it was said to look like, or the system it was made of does."""
        if self.source is not None:
            return self.source.looks(k)
        if self._look is None:
            return particles(self.coordinates)
        return [Look(self._look, range(self.n), self.shared.named(k[: self.shared.size]))]

    def content(self) -> Sequence[Any]:
        listed = {name: term for name, term in vars(self.terms).items() if name not in [*"qpvtk", "box", "by_beta"]}
        terms = {name: term for name, term in listed.items() if term is not None}
        symbols = [self.q, self.p, self.v, self.t, self.k]
        symmetries = [generator.serialize() for generator in self.symmetries.values()]
        source = "" if self.source is None else self.source.digest
        compiled = () if self.box is None else tuple(self.box.content())
        taken = [(beta, serialized(symbols, [ca.SX(x) for x in own])) for beta, own in self.terms.by_beta.items()]
        told = (list(terms), serialized(symbols, list(terms.values())), symmetries, source, *compiled)
        return (*told, taken) if taken else told

    def __str__(self) -> str:
        lines = [f"Hamiltonian with {self.n} coordinate{'s' if self.n != 1 else ''} ({' '.join(self.coordinates)})"]
        for word, value in {
            "separable": "yes" if self.separable else "no",
            "kinetic energy": "quadratic" if self.quadratic else "not quadratic",
            "reversible": "yes" if self.reversible else "no",
            "conservative": "yes" if self.conservative else "no",
            "symmetries": ", ".join(self.symmetries),
            "parameters": ", ".join(f"{name} = {value}" for name, value in self.shared.plain().items()),
        }.items():
            lines += [f"  {word:<17}{value}"] if value else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<livens.Hamiltonian: coordinates {' '.join(self.coordinates)}>"


def _function(role: str, given: Any) -> ModelFunction:
    if not callable(given):
        raise ModelError(f"{role} must be a function, got {given!r}")
    return given
