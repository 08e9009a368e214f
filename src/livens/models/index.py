"""Which variables of ``residual(t, x, x') = 0`` are algebraic, and how often they hide behind derivatives.

With ``E = dr/dx'`` and ``F = dr/dx`` at a generic state, a small perturbation delta of the equations that E belongs to
moves the solution of ``(E/h + F) dx = delta`` by h delta in differential variables and in algebraic ones of index 1,
by delta in those of index 2 (multipliers of constraints on velocity level, velocities under constraints on position
level), and by delta/h in those of index 3. That is how the index of a variable is measured here, and why the errors of
such variables are taken times h and h^2 in the control of steps (Hairer and Wanner, sect. VII.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.expressions.probe import HIGH, LOW, Probe

if TYPE_CHECKING:
    from livens.models.descriptor import Descriptor, DescriptorModel

#: Smaller than any time scale, so that no stiffness is taken for an index.
_H = 1e-60
#: Singular values of E, and rounding of what is rotated, count as zero below this relative size.
_RANK, _CLEAN = 1e-12, 1e-13


@dataclass(frozen=True)
class Pencil:
    """What the matrices E and F say of the variables and equations of a model at a generic state."""

    #: Of every variable: 1 for differential ones and for algebraic ones that follow at once, then 2 and 3.
    indices: tuple[int, ...]
    #: Variables without a derivative in any equation, and equations without the derivative of any variable.
    algebraic: tuple[int, ...]
    equations: tuple[int, ...]
    #: The projector on all directions without a derivative; it is nothing where these depend on the state.
    projector: np.ndarray | None

    @property
    def regular(self) -> bool:
        """Every variable has a derivative, and all derivatives follow."""
        return self.projector is not None and not self.projector.any()

    @property
    def solvable(self) -> bool:
        """The algebraic variables follow from the algebraic equations, one by one: they have index 1."""
        own = self.algebraic and len(self.algebraic) == len(self.equations)
        return bool(own) and all(self.indices[j] == 1 for j in self.algebraic)


def pencil_of(model: DescriptorModel) -> Pencil:
    """The pencil of a model with its own parameters."""
    d, n = model.descriptor, int(model.descriptor.x.numel())
    E, F = ca.jacobian(d.residual, d.xdot), ca.jacobian(d.residual, d.x)
    pattern = ca.sparsify(E).sparsity()
    columns = tuple(j for j in range(n) if j not in set(pattern.get_col()))
    rows = tuple(i for i in range(n) if i not in set(pattern.row()))
    probe = Probe([d.x, d.xdot, d.t, d.k], seed=11, given={3: model.parameter_vector()})
    E_there, F_there = next(probe.values(E, F, enough=1), None) or _anywhere(probe, E, F, d)
    left, right, rank = _rotations(E_there, columns, rows)
    projector: np.ndarray | None = None
    if rank == n - len(columns):
        projector = _selecting(n, columns)
    elif not any(ca.depends_on(E, symbol) for symbol in (d.x, d.xdot, d.t)):
        projector = right[:, rank:] @ right[:, rank:].T
    return Pencil(_indices(E_there, F_there, left, right, rank), columns, rows, projector)


def _anywhere(probe: Probe, E: Any, F: Any, d: Descriptor) -> list[np.ndarray]:
    """E and F of equations that no state drawn at random can be put into, as those of wheels that must touch their
    rails: with numbers drawn for entries that have none there.
    """
    state, random = next(probe.states()), np.random.default_rng(12)
    parts = ca.Function("parts", [d.x, d.xdot, d.t, d.k], [ca.densify(E), ca.densify(F)])(*map(ca.DM, state))
    found = [np.array(part) for part in parts]
    return [np.where(np.isfinite(part), part, random.uniform(LOW, HIGH, part.shape)) for part in found]


def _selecting(n: int, columns: tuple[int, ...]) -> np.ndarray:
    return np.diag([1.0 if j in columns else 0.0 for j in range(n)])


def _rotations(E: np.ndarray, columns: tuple[int, ...], rows: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, int]:
    """Orthogonal U, V and the rank r with ``U^T E V`` zero but for the first r rows and columns.

    Where zero rows and columns do, they are only sorted: nothing is rounded then.
    """
    n = len(E)
    scale = np.abs(E).max(axis=1, initial=0.0)
    _, values, right = np.linalg.svd(E / np.where(scale > 0, scale, 1.0)[:, None])  # a small mass is a mass
    rank = int((values > _RANK * max(float(values[0]), 1e-300)).sum())
    U = _sorted(n, rows) if len(rows) == n - rank else np.linalg.svd(E)[0]
    V = _sorted(n, columns) if len(columns) == n - rank else right.T
    return U, V, rank


def _sorted(n: int, last: tuple[int, ...]) -> np.ndarray:
    """The permutation that puts these at the end."""
    return np.eye(n)[:, [*(i for i in range(n) if i not in last), *last]]


def _indices(E: np.ndarray, F: np.ndarray, U: np.ndarray, V: np.ndarray, rank: int) -> tuple[int, ...]:
    n = len(E)
    if rank == n:
        return (1,) * n
    turned, size = U.T @ F @ V, np.abs(U.T) @ np.abs(F) @ np.abs(V)
    turned[np.abs(turned) <= _CLEAN * size] = 0.0
    # the rows with E times h, so that nothing overflows
    matrix = np.zeros((n, n))
    matrix[:rank, :rank] = (U.T @ E @ V)[:rank, :rank]
    matrix += np.where(np.arange(n)[:, None] < rank, _H, 1.0) * turned
    try:
        moved = V @ np.linalg.inv(matrix)[:, :rank]
    except np.linalg.LinAlgError:
        return (1,) * n
    by = np.abs(moved).max(axis=1, initial=0.0)
    degrees = np.log10(np.where(by > 0, by, 1.0)) / -np.log10(_H)
    return tuple(int(index) for index in 1 + np.clip(np.round(degrees), 0, 2))
