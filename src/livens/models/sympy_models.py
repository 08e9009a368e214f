"""Models of SymPy: Lagrangians, `LagrangesMethod`, `KanesMethod` and `System` as models of livens, and back."""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.sympy_translation import from_sympy_expressions, sympy_module, to_sympy_expressions
from livens.models.first_order import FirstOrder
from livens.types import ModelFunction

if TYPE_CHECKING:
    from livens.models.system import System

#: Largest number of coordinates of systems whose equations are shown in notebooks: simplification takes long.
MAX_SHOWN_COORDINATES = 6


@explain_call_errors
def from_sympy(
    source: object,
    coordinates: Sequence[object] | None = None,
    *,
    constraints: Sequence[object] = (),
    velocity_constraints: Sequence[object] = (),
    forces: Sequence[object] | None = None,
    dissipation: object = None,
    parameters: Mapping[object, float] | None = None,
    specified: Mapping[object, ModelFunction] | None = None,
    invariants: Mapping[str, object] | None = None,
) -> System | FirstOrder:
    """Return a model of SymPy as a model of livens.

    Parameters
    ----------
    source : sympy.Expr, tuple of sympy.Expr, LagrangesMethod, KanesMethod or sympy.physics.mechanics.System
        A Lagrangian L, energies (T, V), or a method of `sympy.physics.mechanics`. The equations of a
        `LagrangesMethod` need not be formed. A `KanesMethod` becomes a `FirstOrder` model.
    coordinates : sequence of sympy.Expr, optional
        Generalized coordinates, functions of time, of a Lagrangian or of energies.
    constraints, velocity_constraints : sequence of sympy.Expr, default ()
        Holonomic constraints g = 0, and constraints of velocities, of a Lagrangian or of energies.
    forces : sequence of sympy.Expr, optional
        Generalized forces, one for each coordinate.
    dissipation : sympy.Expr, optional
        Rayleigh dissipation function.
    parameters : dict of Symbol or str to float, optional
        Values of the symbols.
    specified : dict of sympy.Expr to callable, optional
        Functions of time by the symbol that they replace.
    invariants : dict of str to sympy.Expr, optional
        Quantities of a `KanesMethod` that are monitored in runs, such as its energy.

    Returns
    -------
    System or FirstOrder
        Model of livens. Parameters have the names of the symbols.

    Raises
    ------
    ModelError
        If a symbol has no value, or an expression cannot be translated.
    InputError
        If `source` or another argument is not an expression of SymPy, or `coordinates` are missing or not functions of
        time.

    Examples
    --------
    >>> import livens as lv
    >>> import sympy as sp
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> theta, t = dynamicsymbols("theta"), dynamicsymbols._t
    >>> m, l, g = sp.symbols("m l g")
    >>> L = m * l**2 * theta.diff(t) ** 2 / 2 + m * g * l * sp.cos(theta)
    >>> pendulum = lv.from_sympy(L, [theta], parameters={m: 1.0, l: 2.0, g: 9.81})
    >>> run = lv.simulate(pendulum, q0=[1.0], v0=[0.0], h=0.01, t_end=1.0)
    >>> bool(run.summary.max_energy_drift < 1e-12)
    True
    """
    mechanics = sympy_module().physics.mechanics
    if isinstance(source, mechanics.System):
        if source.eom_method is None:
            source.form_eoms()
        source = source.eom_method
    if isinstance(source, mechanics.KanesMethod):
        return _from_kanes_method(source, parameters, specified, invariants)
    if isinstance(source, mechanics.LagrangesMethod):
        lagrangian = source._L[0] if isinstance(source._L, sympy_module().MatrixBase) else source._L
        holonomic = list(source._hol_coneqs or [])
        return _from_energies(
            lagrangian,
            list(source.q),
            holonomic,
            list(source.coneqs or [])[len(holonomic) :],
            _generalized_forces(source),
            None,
            parameters,
            specified,
        )
    if coordinates is None:
        raise InputError(
            "from_sympy needs coordinates with a Lagrangian or energies (T, V), or a LagrangesMethod, KanesMethod or "
            f"System of sympy.physics.mechanics, got {type(source).__name__}"
        )
    for coordinate in coordinates:
        if not isinstance(coordinate, sympy_module().core.function.AppliedUndef):
            raise InputError(
                "coordinates must be functions of time, such as sympy.physics.mechanics.dynamicsymbols('theta'), got "
                f"{coordinate!r}"
            )
    return _from_energies(
        source, list(coordinates), constraints, velocity_constraints, forces, dissipation, parameters, specified
    )


def _time() -> Any:
    return sympy_module().physics.mechanics.dynamicsymbols._t


def _expression(name: str, value: object) -> Any:
    """Return a scalar expression of SymPy, evaluated; `name` is its label in the error message."""
    sp = sympy_module()
    try:
        expression = sp.sympify(value)
    except (sp.SympifyError, TypeError, AttributeError):
        expression = None
    if not isinstance(expression, sp.Expr):
        raise InputError(f"{name} must be a scalar expression of SymPy, got {value!r}")
    return expression.doit()


def _name(symbol: object) -> str:
    """Return the name of a symbol or function as a Python identifier."""
    text = str(symbol.func if isinstance(symbol, sympy_module().core.function.AppliedUndef) else symbol)
    name = re.sub(r"\W+", "_", re.sub(r"[{}\\^]", "", text)).strip("_")
    return f"{name}_" if keyword.iskeyword(name) or not name.isidentifier() else name


class _SymbolValues:
    """Values of coordinates, rates, time, parameters and specified functions in model functions."""

    def __init__(
        self,
        expressions: Sequence[Any],
        coordinates: Sequence[Any],
        rates: Sequence[Any],
        parameters: Mapping[Any, float] | None,
        specified: Mapping[Any, ModelFunction] | None,
    ) -> None:
        sp = sympy_module()
        free = {s.name: s for e in expressions for s in sp.sympify(e).free_symbols if s != _time()}
        # a parameter passed by name belongs to the symbol of this name, with any assumptions
        symbols = {free.get(str(symbol), symbol): value for symbol, value in (parameters or {}).items()}
        self.parameters = {_name(symbol): float(value) for symbol, value in symbols.items()}
        self._symbols = {symbol: _name(symbol) for symbol in symbols}
        self._coordinates, self._rates, self._specified = coordinates, rates, dict(specified or {})

    def __call__(self, q: Any = (), v: Any = (), t: Any = None, k: Any = None) -> dict[Any, Any]:
        values = dict(zip(self._coordinates, q, strict=False)) | dict(zip(self._rates, v, strict=False))
        if t is not None:
            values |= {_time(): t} | {symbol: function(t) for symbol, function in self._specified.items()}
        return values | {symbol: getattr(k, name) for symbol, name in self._symbols.items()}


def _from_energies(
    energies: object,
    coordinates: list[object],
    constraints: Sequence[object],
    velocity_constraints: Sequence[object],
    forces: Sequence[object] | None,
    dissipation: object,
    parameters: Mapping[object, float] | None,
    specified: Mapping[object, ModelFunction] | None,
) -> System:
    from livens.models.system import System

    sp, t = sympy_module(), _time()
    rates = [sp.Derivative(q, t) for q in coordinates]
    if isinstance(energies, (tuple, list)):
        if len(energies) != 2:
            raise InputError(f"energies must be (T, V), got {len(energies)} expressions")
        T, V = (_expression("an energy", energy) for energy in energies)
    else:
        lagrangian = _expression("the Lagrangian", energies)
        V = -lagrangian.subs(dict.fromkeys(rates, 0))
        T = sp.expand(lagrangian + V)
    if _is_time_dependent(T, coordinates):
        raise ModelError("kinetic: the kinetic energy depends on time explicitly, which a System does not allow")
    g = [_expression("a constraint", e) for e in constraints]
    h = [_expression("a velocity constraint", e) for e in velocity_constraints]
    F = [_expression("a force", e) for e in (() if forces is None else forces)]
    R = None if dissipation is None else _expression("the dissipation function", dissipation)
    values = _SymbolValues([T, V, *g, *h, *F, *([] if R is None else [R])], coordinates, rates, parameters, specified)
    functions: dict[str, Any] = {
        "kinetic": lambda q, v, k: from_sympy_expressions([T], values(q, v, k=k))[0],
        "potential": lambda q, t, k: from_sympy_expressions([V], values(q, (), t, k))[0],
    }
    if g:
        functions["constraints"] = lambda q, t, k: from_sympy_expressions(g, values(q, (), t, k))
    if h:
        functions["velocity_constraints"] = lambda q, v, t, k: from_sympy_expressions(h, values(q, v, t, k))
    if any(force != 0 for force in F):
        functions["forces"] = lambda q, v, t, k: from_sympy_expressions(F, values(q, v, t, k))
    if R is not None:
        functions["dissipation"] = lambda q, v, t, k: from_sympy_expressions([R], values(q, v, t, k))[0]
    return System([_name(q) for q in coordinates], parameters=values.parameters, **functions)


def _is_time_dependent(expression: Any, coordinates: Sequence[Any]) -> bool:
    """Return True if an expression depends on time other than by the coordinates and their rates."""
    sp, t = sympy_module(), _time()
    rates = {sp.Derivative(q, t): sp.Dummy() for q in coordinates}
    return bool(expression.xreplace(rates).xreplace({q: sp.Dummy() for q in coordinates}).has(t))


def _generalized_forces(method: Any) -> list[Any]:
    """Return the generalized forces of the forces and torques of a LagrangesMethod."""
    sp, mechanics = sympy_module(), sympy_module().physics.mechanics
    forces = [sp.S.Zero] * len(method.q)
    for target, load in method.forcelist or []:
        is_point = isinstance(target, mechanics.Point)
        velocity = target.vel(method.inertial) if is_point else target.ang_vel_in(method.inertial)
        for i, q in enumerate(method.q):
            partial_velocity = velocity.diff(sp.Derivative(q, _time()), method.inertial, var_in_dcm=False)
            forces[i] += partial_velocity.dot(load)
    return forces


def _from_kanes_method(
    method: Any,
    parameters: Mapping[Any, float] | None,
    specified: Mapping[Any, ModelFunction] | None,
    invariants: Mapping[str, Any] | None,
) -> FirstOrder:
    """Return ``M(x, t) x' = f(x, t)`` of coordinates and speeds; the equations of the method are formed already."""
    sp = sympy_module()
    kinematics = method.kindiffdict()
    mass, forcing = sp.Matrix(method.mass_matrix_full), sp.Matrix(method.forcing_full).subs(kinematics).doit()
    watched = {name: sp.sympify(e).subs(kinematics).doit() for name, e in (invariants or {}).items()}
    states = [*method.q, *method.u]
    values = _SymbolValues([*mass, *forcing, *watched.values()], states, (), parameters, specified)

    def function(expressions: Sequence[Any]) -> ModelFunction:
        return lambda x, t, k: from_sympy_expressions(expressions, values(x, (), t, k))

    n, mass_entries = len(states), function(list(mass))
    return FirstOrder(
        [_name(state) for state in states],
        rhs=function(list(forcing)),
        mass=lambda x, t, k: np.array(mass_entries(x, t, k), dtype=object).reshape(n, n),
        parameters=values.parameters,
        invariants={name: lambda x, t, k, e=e: function([e])(x, t, k)[0] for name, e in watched.items()},
    )


# -- to SymPy ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SympySystem:
    """Energies, constraints and forces of a `System` as SymPy expressions, returned by `System.to_sympy`.

    Parameters
    ----------
    coordinates : tuple of sympy.Expr
        Generalized coordinates, functions of time.
    kinetic, potential, dissipation : sympy.Expr
        Kinetic energy T, potential energy V and Rayleigh dissipation function R.
    constraints : tuple of sympy.Expr
        Position constraints g = 0.
    forces : tuple of sympy.Expr
        Generalized forces, one for each coordinate.
    """

    coordinates: tuple[Any, ...]
    kinetic: Any
    potential: Any
    dissipation: Any
    constraints: tuple[Any, ...]
    forces: tuple[Any, ...]

    @functools.cached_property
    def lagrangian(self) -> Any:
        """Lagrangian L = T - V, simplified."""
        sp = sympy_module()
        return sp.simplify(self.kinetic) - sp.simplify(self.potential)

    @functools.cached_property
    def equations(self) -> tuple[Any, ...]:
        """Equations of motion ``d/dt dL/dv - dL/dq = F - dR/dv - G^T lambda``, and constraints, simplified."""
        sp, t, L = sympy_module(), _time(), self.kinetic - self.potential
        multipliers = sp.symbols(f"lambda_1:{len(self.constraints) + 1}")
        equations = []
        for q, force in zip(self.coordinates, self.forces, strict=True):
            v = sp.Derivative(q, t)
            inertia = sp.diff(L.diff(v), t) - L.diff(q)
            reactions = sum((lam * g.diff(q) for lam, g in zip(multipliers, self.constraints, strict=True)), sp.S.Zero)
            load = force - self.dissipation.diff(v) - reactions
            equations.append(sp.Eq(sp.simplify(inertia.doit()), sp.simplify(load), evaluate=False))
        equations += [sp.Eq(sp.S.Zero, sp.simplify(g), evaluate=False) for g in self.constraints]
        return tuple(equations)

    def _repr_latex_(self) -> str:
        latex = sympy_module().physics.mechanics.vlatex
        lines = [f"{latex(equation.lhs)} &= {latex(equation.rhs)}" for equation in self.equations]
        return r"$\displaystyle \begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}$"


def to_sympy(system: System) -> SympySystem:
    """Return the energies, constraints and forces of a system as SymPy expressions; see `System.to_sympy`."""
    sp, t = sympy_module(), _time()
    if system.has_velocity_constraints:
        raise InputError("to_sympy: velocity-level constraints cannot be exported")
    q = [sp.physics.mechanics.dynamicsymbols(name) for name in system.coordinates]
    parameters: list[Any] = [sp.S.Zero] * system.parameter_count
    for name, entry in system.parameter_table.entries.items():
        for part in entry.slices:
            size = part.stop - part.start
            for i in range(size):
                parameters[part.start + i] = sp.Symbol(name if size == 1 else f"{name}_{i}")
    d: Any = system.view
    outputs = [ca.densify(ca.SX(part)) for part in (d.T, d.V, d.R, d.F, d.g)]
    function = ca.Function("system", [d.q, d.v, d.t, d.k], outputs)
    T, V, R, F, g = to_sympy_expressions(function, [q, [sp.Derivative(x, t) for x in q], [t], parameters])
    return SympySystem(tuple(q), sp.sympify(T[0]), sp.sympify(V[0]), sp.sympify(R[0]), tuple(g), tuple(F))
