"""Interconnection of any number of port-Hamiltonian systems by relations between named ports."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError, ModelError, explain_call_errors, suggestion
from livens.expressions.parameters import Parameters, ParameterTable
from livens.expressions.tracing import FunctionTracer
from livens.models.port_hamiltonian.interconnection import ParallelSystem, apply_relations, parallel
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.types import ModelFunction, ScalarLike


@explain_call_errors
def interconnect_all(systems: Mapping[str, PortHamiltonian], relations: ModelFunction) -> PortHamiltonian:
    """Interconnect systems by relations between their ports, named ``system.port``.

    Parameters
    ----------
    systems : mapping of str to PortHamiltonian
        At least two systems by name. In the result, states are named ``system.state`` and parameters
        ``system_parameter``.
    relations : callable
        Function of ``y u``, the outputs and inputs of all open ports by name, that returns a list of residuals: sums
        with constant factors. The relations must not create power, see `interconnect`.

    Returns
    -------
    PortHamiltonian
        The interconnected system.

    Raises
    ------
    InputError
        If `systems` or `relations` is invalid.
    ModelError
        If the relations are not linear, create power, or are an algebraic loop.

    Examples
    --------
    >>> import livens as lv
    >>> from livens.port_hamiltonian import interconnect_all
    >>> cart = lv.PortHamiltonian("p", H=lambda x, k: x[0] ** 2 / (2 * k.m), B=[[1]], ports="f", parameters=dict(m=1.0))
    >>> spring = lv.PortHamiltonian("s", H=lambda x: x[0] ** 2 / 2, B=[[1]], ports="v")
    >>> train = interconnect_all(
    ...     {"engine": cart, "hook": spring, "wagon": cart},
    ...     lambda y, u: [
    ...         u["hook.v"] - y["engine.f"] + y["wagon.f"],
    ...         u["wagon.f"] - y["hook.v"],
    ...         u["engine.f"] + y["hook.v"],
    ...     ],
    ... )
    >>> train.states, train.parameters
    (('engine.p', 'hook.s', 'wagon.p'), {'engine_m': 1.0, 'wagon_m': 1.0})
    """
    if not isinstance(systems, Mapping) or len(systems) < 2:
        raise InputError(f"a network needs at least two systems by name, got {systems!r}")
    for name, system in systems.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"the name of a system must be a Python identifier, got {name!r}")
        if not isinstance(system, PortHamiltonian):
            raise InputError(f"'{name}' of a network must be a PortHamiltonian, got {system!r}")
    parts = [_prefixed(name, system) for name, system in systems.items()]
    systems_in_parallel = functools.reduce(
        lambda systems, part: parallel(_as_model(systems), part), parts[1:], _as_parallel(parts[0])
    )
    ports = [
        port
        for port, law in zip(systems_in_parallel.ports, systems_in_parallel.structure.inputs, strict=True)
        if law is None
    ]
    return apply_relations(systems_in_parallel, *_relation_matrices(relations, ports))


def _prefixed(name: str, system: PortHamiltonian) -> PortHamiltonian:
    """Return the system with its name as prefix of states, ports and parameters."""
    values = Parameters({f"{name}_{parameter}": value for parameter, value in system.model_parameters.values.items()})
    further = {f"{name}.{entry}": location for entry, location in system.parameter_table.aliases.items()}
    return PortHamiltonian.from_structure(
        system.structure,
        [f"{name}.{state}" for state in system.states],
        [f"{name}.{port}" for port in system.ports],
        ParameterTable(values, aliases=further),
    )


def _as_parallel(system: PortHamiltonian) -> ParallelSystem:
    return ParallelSystem(system.structure, system.states, system.ports, system.parameter_table)


def _as_model(systems: ParallelSystem) -> PortHamiltonian:
    return PortHamiltonian.from_structure(systems.structure, systems.states, systems.ports, systems.parameters)


class PortMapping(Mapping[str, Any]):
    """Mapping of port names to outputs or inputs."""

    def __init__(self, values: Mapping[str, ScalarLike]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise ModelError(f"there is no open port '{name}'{suggestion(str(name), self._values)}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _relation_matrices(relations: ModelFunction, ports: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return M and N of ``M y + N u = 0``."""
    if not callable(relations):
        raise InputError(f"relations must be a function of y and u, got {relations!r}")
    y, u = ca.SX.sym("y", len(ports)), ca.SX.sym("u", len(ports))
    outputs, inputs = (PortMapping(dict(zip(ports, m.from_casadi(part), strict=True))) for part in (y, u))
    trace = FunctionTracer({"y": outputs, "u": inputs}, verb="return")
    relation_values, variables = (
        trace.as_column("relations", trace.trace("relations", relations, "yu")),
        ca.vertcat(y, u),
    )
    jacobian = ca.jacobian(relation_values, variables)
    constant = (
        ca.DM(ca.substitute(relation_values, variables, ca.SX.zeros(variables.numel())))
        if relation_values.numel()
        else ca.DM(0, 1)
    )
    if not relation_values.numel() or ca.depends_on(jacobian, variables) or not constant.is_zero():
        raise ModelError("relations must return sums of outputs and inputs with constant factors, at least one")
    M, N = (np.array(ca.DM(ca.jacobian(relation_values, part))) for part in (y, u))
    return M, N
