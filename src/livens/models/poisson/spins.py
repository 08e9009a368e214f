"""Spin systems: Lie-Poisson systems on products of so(3)*, whose spins move on spheres."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters, ParameterTable
from livens.expressions.state_layout import Layout
from livens.expressions.tracing import FunctionTracer
from livens.math import array, from_casadi
from livens.models.base import InitialState, check_initial_value_names
from livens.models.element import ElementType
from livens.models.element_groups import ElementGroup
from livens.models.element_sums import BilinearForm, ElementSums, Reduction, element_sums
from livens.models.poisson.model import Poisson, poisson_structure
from livens.models.port_hamiltonian.structure import PHStructure
from livens.models.system import SPARSE_THRESHOLD
from livens.types import ModelFunction
from livens.validation import check_vector

#: Name of the monitored Casimirs.
SQUARED_LENGTHS = "squared_lengths"


@explain_call_errors
class Spins(Poisson):
    """Spin system ``s_i' = s_i x dH/ds_i``: every spin moves on a sphere, and so does a free rigid body.

    The Casimirs are the squared lengths of the spins. The energy is a function of all spins, or a sum over single spins
    and pairs, which is assembled: the cost of a step is linear in their number. For a rigid body the spin is the
    angular momentum in the body frame.

    Parameters
    ----------
    spins : str, sequence of str or int
        Names of the spins, or their number. The states of the spin "s0" are "s0.x", "s0.y" and "s0.z".
    hamiltonian : callable, optional
        Energy, a function of ``s k`` with the spins ``s`` of shape (n_spins, 3).
    spin_energy : callable, optional
        Energy of one spin, a function of ``s k`` with the spin ``s`` of shape (3,).
    pair_energy : callable, optional
        Energy of one pair, a function of ``a b k`` with the spins ``a`` and ``b`` of shape (3,).
    pairs : sequence of (int, int), default ()
        Indices of the spins of each pair.
    parameters : mapping, optional
        Parameter values by name, available to all energies as ``k``.
    spin_parameters, pair_parameters : mapping, optional
        Arrays with one value per spin or per pair, by name; in the energy of one of them ``k`` has its value.
    invariants : mapping of str to callable, optional
        Other conserved quantities by name, functions of ``s k`` that return a number or a vector.
    visual : callable, optional
        Function of ``x t k`` that returns shapes, see `livens.shapes`.

    Raises
    ------
    InputError
        If there is no spin, or a pair names a spin that does not exist.
    ModelError
        If an energy is missing or invalid.

    Examples
    --------
    >>> import livens as lv
    >>> chain = lv.Spins(
    ...     4,
    ...     pair_energy=lambda a, b, k: -k.J * (a @ b),
    ...     pairs=[(i, (i + 1) % 4) for i in range(4)],
    ...     parameters=dict(J=1.0),
    ...     invariants=dict(total_spin=lambda s: s.sum(axis=0)),
    ... )
    >>> s0 = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.8, 0]]
    >>> run = lv.simulate(chain, x0=s0, scheme="spherical-midpoint", h=0.1, t_end=100.0)
    >>> bool(run.summary.momentum_drift["squared_lengths"] < 1e-13)
    True
    """

    type_label = "Spins"
    formulations = ("spins", "port-hamiltonian", "descriptor")

    def __init__(
        self,
        spins: Names,
        *,
        hamiltonian: ModelFunction | None = None,
        spin_energy: ModelFunction | None = None,
        pair_energy: ModelFunction | None = None,
        pairs: Sequence[Sequence[int]] = (),
        parameters: Mapping[str, object] | None = None,
        spin_parameters: Mapping[str, object] | None = None,
        pair_parameters: Mapping[str, object] | None = None,
        invariants: Mapping[str, ModelFunction] | None = None,
        visual: ModelFunction | None = None,
    ) -> None:
        self.spins = parse_names("spins", spins, "s", singular="spin")
        self.count = len(self.spins)
        if not self.count:
            raise InputError("a spin system needs at least one spin")
        self.coordinates = tuple(f"{spin}.{axis}" for spin in self.spins for axis in "xyz")
        self.n, self.m, self.ports, self.visual = 3 * self.count, 0, (), visual
        table = self._pair_table(pairs)
        if (pair_energy is None) != (len(table) == 0):
            raise ModelError("give pair_energy together with pairs")
        if hamiltonian is None and spin_energy is None and pair_energy is None:
            raise ModelError("the spins have no energy: give hamiltonian, spin_energy, or pair_energy with pairs")
        shared = Parameters(parameters)
        local_parameters = [self._own_parameters("spin", spin_parameters, self.count)]
        local_parameters += [self._own_parameters("pair", pair_parameters, len(table))]
        merged = {**shared.values, **local_parameters[0].values, **local_parameters[1].values}
        if len(merged) < len(shared.values) + len(local_parameters[0].values) + len(local_parameters[1].values):
            raise ModelError("parameters, spin_parameters and pair_parameters have a name in common")
        self._shared = shared
        self.model_parameters = Parameters(merged)
        self.parameter_table = ParameterTable(self.model_parameters)
        energy_terms: list[tuple[str, ModelFunction | None, np.ndarray, Parameters, int]] = [
            ("hamiltonian", hamiltonian, np.arange(self.n)[None], Parameters(), 0),
            ("spin_energy", spin_energy, np.arange(self.n).reshape(-1, 3), local_parameters[0], shared.size),
            (
                "pair_energy",
                pair_energy,
                _coordinates_of(table),
                local_parameters[1],
                shared.size + local_parameters[0].size,
            ),
        ]
        #: Energies by kind, with the coordinates and parameters of their instances.
        self.element_groups = tuple(
            _energy_group(role, function, dofs, shared, parts, offset)
            for role, function, dofs, parts, offset in energy_terms
            if function is not None
        )
        if invariants is not None and not isinstance(invariants, Mapping):
            raise ModelError(f"invariants must map names to functions, got {invariants!r}")
        self._x, self._k = ca.SX.sym("x", self.n), ca.SX.sym("k", self.model_parameters.size)
        namespace = ParameterNamespace(shared.unpack_symbols(self._k[: shared.size]))
        trace = FunctionTracer({"s": from_casadi(self._x).reshape(-1, 3), "k": namespace})
        squares = ca.sum2(ca.reshape(self._x, 3, self.count).T ** 2)
        self.casimirs = {SQUARED_LENGTHS: ca.densify(squares)}
        self.symmetries = dict(self.casimirs)
        for name, function in (invariants or {}).items():
            role = f"invariant '{name}'"
            self.symmetries[name] = trace.as_column(role, np.ravel(array(trace.trace(role, function, "sk"))))

    def _pair_table(self, pairs: Any) -> np.ndarray:
        try:
            table = np.array([[int(i) for i in pair] for pair in pairs], dtype=np.int64)
        except (TypeError, ValueError):
            raise InputError(f"pairs must be a list of two indices of spins each, got {pairs!r}") from None
        if table.size and (table.ndim != 2 or table.shape[1] != 2 or table.min() < 0 or table.max() >= self.count):
            raise InputError(f"pairs must be two indices of spins each, from 0 to {self.count - 1}")
        if table.size and np.any(table[:, 0] == table[:, 1]):
            raise InputError("pairs names a spin twice: give its energy by spin_energy")
        return table

    def _own_parameters(self, label: str, values: Mapping[str, object] | None, count: int) -> Parameters:
        parameters = Parameters(values)
        for name, value in parameters.values.items():
            if value.shape != (count,):
                raise InputError(
                    f"{label}_parameters '{name}' must have one value per {label}: {count}, got {value.shape}"
                )
        return parameters

    # -- one graph of all energies ------------------------------------------------------------------------------------
    @functools.cached_property
    def structure(self) -> PHStructure:  # type: ignore[override]  # derived when it is needed
        """Structure matrix and Hamiltonian as expressions of the whole state."""
        H = ca.SX(0)
        for group in self.element_groups:
            model = group.element_type
            energy = ca.Function("H", [model.q, model.k], [model.V])
            for dofs, parameters in zip(group.coordinates.tolist(), group.parameters.tolist(), strict=True):
                H += energy(self._x[dofs], self._k[parameters])
        blocks = [ca.skew(self._x[3 * i : 3 * i + 3]) for i in range(self.count)]
        return poisson_structure(self._x, self._k, H, ca.diagcat(*blocks))

    @property
    def default_scheme(self) -> str:  # type: ignore[override]
        return "spherical-midpoint"

    @property
    def is_ode(self) -> bool:
        return True

    @property
    def uses_sparse_path(self) -> bool:
        return self.n > SPARSE_THRESHOLD

    @property
    def assembly_size(self) -> int:
        return self.n

    @property
    def layout(self) -> Layout:
        return Layout(x=self.n, supplied_energy=1, dissipated_energy=1)

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        check_initial_value_names(initial_values, ("x0",), "spin system")
        initial: Any = initial_values.get("x0")
        try:
            if np.shape(initial) == (self.count, 3):
                initial = np.asarray(initial, dtype=float).ravel()
        except (TypeError, ValueError):
            pass  # ragged: the check below has the message
        x = check_vector("x0", initial, self.coordinates, "state")
        if np.any(np.abs(x.reshape(-1, 3)).max(axis=1) == 0):
            first = self.spins[int(np.argmin(np.abs(x.reshape(-1, 3)).max(axis=1)))]
            raise InputError(f"x0: the spin '{first}' is zero; a spin must have a direction")
        return InitialState(t0, {"x": x})

    # -- observables as sums ------------------------------------------------------------------------------------------
    def is_invariant(self, name: str, k: np.ndarray) -> bool:
        return name in self.casimirs or (not self.uses_sparse_path and super().is_invariant(name, k))

    def _reductions(self, name: str) -> list[Reduction] | None:
        if name == "hamiltonian":
            return [Reduction(lambda e: e.element_type.V)]
        if name == SQUARED_LENGTHS:
            ones = np.ones(3)
            return [
                Reduction(bilinear=BilinearForm(dofs, dofs, ones)) for dofs in np.arange(self.n).reshape(self.count, 3)
            ]
        return None

    def observable_element_sums(self, name: str) -> ElementSums | None:
        reductions = self._reductions(name) if self.uses_sparse_path else None
        return None if reductions is None else element_sums(self, reductions)

    def monitored_element_sums(self, energy: str, momenta: tuple[str, ...]) -> Any:
        parts = [self._reductions(name) for name in momenta]
        if not self.uses_sparse_path or any(part is None for part in parts):
            return None
        none = Reduction(bilinear=BilinearForm(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)))
        size = Reduction(lambda e: ca.fabs(e.element_type.V))
        reductions = [Reduction(lambda e: e.element_type.V), size, none, none]
        reductions += [reduction for part in parts if part is not None for reduction in part]
        sizes = np.array([len(part) for part in parts if part is not None], dtype=np.int64)
        return element_sums(self, reductions), sizes

    def fingerprint_data(self) -> Sequence[object]:
        groups = [
            (group.element_type.fingerprint, group.coordinates.tolist(), group.parameters.tolist())
            for group in self.element_groups
        ]
        others = [value for name, value in self.symmetries.items() if name not in self.casimirs]
        return groups, ca.Function("invariants", [self._x, self._k], others).serialize()

    def __str__(self) -> str:
        energies = ", ".join(f"{group.count} of {group.element_type.n // 3} spins" for group in self.element_groups)
        return f"spin system with {self.count} spins\n  energies         {energies}"

    def __repr__(self) -> str:
        return f"<livens.Spins: {self.count} spin{'' if self.count == 1 else 's'}>"


def _coordinates_of(pairs: np.ndarray) -> np.ndarray:
    """Return the six coordinates of each pair."""
    each = np.arange(3)
    return np.concatenate([3 * pairs[:, :1] + each, 3 * pairs[:, 1:] + each], axis=1) if pairs.size else pairs


def _energy_group(
    role: str, function: ModelFunction, dofs: np.ndarray, shared: Parameters, local: Parameters, first_parameter: int
) -> ElementGroup:
    """Return the group of one energy: its expression, and the coordinates and parameters of its instances."""
    n, count = dofs.shape[1], len(dofs)
    q, k = ca.SX.sym("q", n), ca.SX.sym("k", shared.size + len(local.values))
    symbols = from_casadi(k)
    named = shared.unpack(symbols[: shared.size])
    named |= dict(zip(local.values, symbols[shared.size :], strict=True))
    spins = from_casadi(q).reshape(-1, 3)
    arguments = {"a": spins[0], "b": spins[-1]} if role == "pair_energy" else {"s": spins}
    if role == "spin_energy":
        arguments = {"s": spins[0]}
    trace = FunctionTracer({**arguments, "k": ParameterNamespace(named)}, verb="return")
    energy = trace(role, function, (), "".join([*arguments, "k"]))
    v, t = ca.SX.sym("v", n), ca.SX.sym("t")
    model = ElementType(q, v, t, k, (), ca.SX(0), energy, ca.SX(0), ca.SX(n, 1), ca.SX(0, 1), {})
    each = np.arange(count)[:, None]
    own_parameters = [first_parameter + i * count + each for i in range(len(local.values))]
    common = np.tile(np.arange(shared.size), (count, 1))
    parameters = np.concatenate([common, *own_parameters], axis=1).astype(np.int64)
    return ElementGroup(model, each.ravel(), dofs, np.zeros((count, 0), np.int64), parameters)
