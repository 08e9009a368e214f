"""Observables: what a run can be asked for, computed from its states."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.dynamics import Dynamics, dynamics
from livens.engine import loop
from livens.engine.kernels import simple_kernel
from livens.errors import InputError, suggestion
from livens.system import System

if TYPE_CHECKING:
    from livens.result import Result

#: Expressions of the state alone.
_EXPRESSIONS: dict[str, Callable[[Dynamics], Any]] = {
    "kinetic_energy": lambda d: d.T,
    "potential_energy": lambda d: d.V,
    "total_energy": lambda d: d.T + d.V,
    "generalized_energy": lambda d: ca.dot(d.p, d.v) - d.T + d.V,
    "hamiltonian": lambda d: _hamiltonian(d),
    "constraint": lambda d: d.g,
    "velocity_constraint": lambda d: d.velocity_constraint,
}
#: What the run itself recorded.
RECORDED = ("supplied_energy", "dissipated_energy", "multipliers", "step_size", "newton_iterations")
_MOMENTA = ("linear_momentum", "angular_momentum")
NAMES = (*_EXPRESSIONS, *_MOMENTA, *RECORDED, "energy_balance_defect")


def _hamiltonian(d: Dynamics) -> Any:
    """``p.M^-1 p/2 + V``, where it is defined."""
    if not d.system.regular_mass:
        raise InputError("the Hamiltonian is not defined: the mass matrix is singular; use 'generalized_energy'")
    M = ca.jacobian(d.fibre_derivative, d.v)
    if ca.depends_on(M, d.v):
        raise InputError("the Hamiltonian is implemented for kinetic energies quadratic in v; use 'generalized_energy'")
    return ca.dot(d.p, ca.solve(M, d.p)) / 2 + d.V


def expression(system: System, name: str) -> Any:
    """An observable of the state as an expression of the system's Dynamics."""
    d = dynamics(system)
    if name in _EXPRESSIONS:
        return _EXPRESSIONS[name](d)
    if name in system.symmetries or name in _MOMENTA:
        return system.momentum_symmetry(name)(d.q).T @ d.p
    raise InputError(f"unknown observable '{name}'{suggestion(name, {*NAMES, *system.symmetries})}")


@functools.lru_cache(maxsize=256)
def _kernel(system: System, names: tuple[str, ...]) -> tuple[int, int]:
    """Native code for some observables side by side, and how many numbers it gives."""
    columns = ca.densify(ca.vertcat(*(expression(system, name) for name in names)))
    return kernel_of(system, columns), columns.numel()


def kernel_of(system: System, columns: Any) -> int:
    """Native code for a column of expressions of the system's Dynamics, over states as the engine lays them out."""
    d = dynamics(system)
    x, rest, h = ca.SX.sym("x", 0), ca.SX.sym("work", 2), ca.SX.sym("h")
    layout = [x, ca.vertcat(d.q, d.v, d.p, rest), ca.vertcat(h, d.t, d.k)]
    return simple_kernel(ca.Function("observe", layout, [columns]), "observe", effort=1)


def tabulate(kernel: int, width: int, t: np.ndarray, Z: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Evaluate native code of `kernel_of` at every state."""
    out = np.empty((len(t), width))
    c = np.concatenate([[0.0, 0.0], k])
    loop.tabulate(kernel, Z, np.ascontiguousarray(Z), c, np.ascontiguousarray(t, dtype=float), out)
    return out


def observe(result: Result, name: str) -> np.ndarray:
    """The observable `name` at every stored time: one number each, or one row of numbers."""
    if name in RECORDED:
        return np.asarray(getattr(result, name))
    if name == "energy_balance_defect":
        energy = observe(result, "generalized_energy")
        return np.asarray(energy - energy[0] - result.supplied_energy + result.dissipated_energy)
    system = result.system
    kernel, width = _kernel(system, (name,))
    work = np.zeros((len(result.t), 2))
    table = tabulate(kernel, width, result.t, np.hstack([result.q, result.v, result.p, work]), result.parameter_vector)
    scalar = width == 1 and name not in ("constraint", "velocity_constraint")
    return table[:, 0] if scalar else table
