"""Nonlinear programs of repeated blocks, with exact sparse first and second derivatives.

A block is differentiated once, as a graph of its local variables, and evaluated on all repetitions by CasADi's ``map``.
Gradient, Jacobian and Hessian of the program are gathered from the local derivatives by index. The size of the graphs
does not depend on the number of repetitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.interpreter import common_subexpressions

#: Magnitude of a bound that counts as infinite, as in IPOPT.
INFINITE_BOUND = 1e19


class BlockFunctions:
    """Cost and constraints of local variables w with data d, and their derivatives as CasADi functions.

    The cost is the sum of the weights times the terms.
    """

    def __init__(
        self,
        name: str,
        w: ca.SX,
        d: ca.SX,
        constraints: ca.SX,
        terms: ca.SX,
        weights: Sequence[float],
        labels: Sequence[str],
    ) -> None:
        self.name, self.labels = name, tuple(labels)
        # common subexpressions are eliminated before the differentiation: afterwards it takes ten times as long
        constraints, terms = common_subexpressions([ca.densify(ca.SX(constraints)), ca.densify(ca.SX(terms))])
        cost = ca.dot(ca.DM(list(weights)), terms) if len(weights) else ca.SX(0)
        self.n_variables, self.n_constraints = int(w.numel()), int(constraints.numel())
        lam, sigma = ca.SX.sym("lam", self.n_constraints), ca.SX.sym("sigma")
        jacobian = ca.jacobian(constraints, w)
        lagrangian = sigma * cost + (ca.dot(lam, constraints) if self.n_constraints else 0)
        hessian = ca.triu(ca.hessian(lagrangian, w)[0])
        self.jacobian_rows, self.jacobian_columns = _triplets(jacobian)
        self.hessian_rows, self.hessian_columns = _triplets(hessian)
        self.value = ca.Function(f"{name}_value", [w, d], [constraints, cost])
        self.terms = ca.Function(f"{name}_terms", [w, d], [terms])
        self.gradient = ca.Function(f"{name}_gradient", [w, d], [cost, ca.densify(ca.gradient(cost, w))])
        self.jacobian = ca.Function(f"{name}_jacobian", [w, d], [constraints, _nonzeros(jacobian)])
        self.hessian = ca.Function(f"{name}_hessian", [w, d, sigma, lam], [_nonzeros(hessian)])


@dataclass(frozen=True, eq=False)
class Block:
    """Repetitions of block functions: global indices, data and constraint bounds, one row per repetition."""

    functions: BlockFunctions
    index: np.ndarray  # (n_repetitions, n_variables)
    data: np.ndarray  # (n_repetitions, n_data)
    lower: np.ndarray  # (n_repetitions, n_constraints)
    upper: np.ndarray  # (n_repetitions, n_constraints)

    @property
    def count(self) -> int:
        return len(self.index)

    def evaluate(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the constraints, (n_repetitions, n_constraints), and the summed cost at the variables w."""
        constraints, cost = self.functions.value.map(self.count)(w[self.index].T, self.data.T)
        return np.array(constraints).T.reshape(self.count, -1), float(np.array(cost).sum())

    def cost_terms(self, w: np.ndarray) -> np.ndarray:
        """Return the summed terms of the cost, without weights, at the variables w."""
        return np.array(self.functions.terms.map(self.count)(w[self.index].T, self.data.T)).sum(axis=1)


class BlockProgram:
    """Nonlinear program made of blocks, ready for ``casadi.nlpsol``.

    The solver works on the variables divided by `scale` and on the cost times `cost_scale`. Both are powers of two, so
    that scaling does not round.
    """

    def __init__(self, size: int, blocks: Sequence[Block], scale: np.ndarray, cost_scale: float = 1.0) -> None:
        self.size, self.blocks, self.scale, self.cost_scale = size, tuple(blocks), scale, cost_scale
        n_rows = [block.functions.n_constraints * block.count for block in blocks]
        self.offsets = np.cumsum([0, *n_rows])
        self.n_constraints = int(self.offsets[-1])
        self._x, self._p = ca.MX.sym("x", size), ca.MX(0, 1)
        self._f, self._g = ca.MX(0), ca.MX(0, 1)
        self.derivatives = self._derivative_functions()
        self.lower = np.concatenate([block.lower.ravel() for block in blocks])
        self.upper = np.concatenate([block.upper.ravel() for block in blocks])

    def _derivative_functions(self) -> dict[str, ca.Function]:
        """Return the functions ``grad_f``, ``jac_g`` and ``hess_lag`` of ``nlpsol``."""
        x, size = self._x, self.size
        sigma, lam = ca.MX.sym("sigma"), ca.MX.sym("lam", self.n_constraints)
        costs, values, gradients, gradient_index, values_j = [], [], [], [], []
        jac_values, jac_keys, hess_values, hess_keys = [], [], [], []
        for block, offset in zip(self.blocks, self.offsets, strict=False):
            f, index, count = block.functions, block.index, block.count
            local = ca.reshape(ca.DM(self.scale[index.ravel()]) * x[index.ravel().tolist()], f.n_variables, count)
            data = ca.DM(block.data.T) if block.data.size else ca.DM(0, count)
            constraints, cost = _mapped(f.value, count)(local, data)
            values.append(ca.vec(constraints))
            costs.append(self.cost_scale * ca.sum2(cost))
            gradients.append(self.cost_scale * ca.vec(_mapped(f.gradient, count)(local, data)[1]))
            gradient_index.append(index.ravel())
            rows, columns = f.jacobian_rows, f.jacobian_columns
            if rows.size:
                constraints, nonzeros = _mapped(f.jacobian, count)(local, data)
                jac_values.append(ca.DM(self.scale[index[:, columns].ravel()]) * ca.vec(nonzeros))
                global_rows = offset + np.arange(count)[:, None] * f.n_constraints + rows[None, :]
                jac_keys.append((index[:, columns] * self.n_constraints + global_rows).ravel())
            values_j.append(ca.vec(constraints))
            rows, columns = f.hessian_rows, f.hessian_columns
            if rows.size:
                end = int(offset) + f.n_constraints * count
                block_lam = ca.reshape(lam[int(offset) : end], f.n_constraints, count)
                block_sigma = ca.repmat(self.cost_scale * sigma, 1, count)
                nonzeros = _mapped(f.hessian, count)(local, data, block_sigma, block_lam)
                i, j = index[:, rows], index[:, columns]
                # one variable may be two local variables: both off-diagonal entries then add to one diagonal entry
                twice = np.where((i == j) & (rows != columns)[None, :], 2.0, 1.0).ravel()
                factors = twice * (self.scale[i] * self.scale[j]).ravel()
                hess_values.append(ca.DM(factors) * ca.vec(nonzeros))
                hess_keys.append((np.maximum(i, j) * size + np.minimum(i, j)).ravel())
        self._f, self._g = sum(costs[1:], costs[0]), ca.vertcat(*values)
        gradient_rows = np.concatenate(gradient_index)
        scatter = _indicator(gradient_rows, size)
        gradient = ca.densify(ca.DM(self.scale) * (scatter @ ca.vertcat(*gradients)))
        self.jacobian_sparsity, jacobian = _gather(jac_keys, jac_values, self.n_constraints, size)
        self.hessian_sparsity, hessian = _gather(hess_keys, hess_values, size, size)
        p = self._p
        return {
            "grad_f": ca.Function("nlp_grad_f", [x, p], [self._f, gradient], ["x", "p"], ["f", "grad_f_x"]),
            "jac_g": ca.Function("nlp_jac_g", [x, p], [ca.vertcat(*values_j), jacobian], ["x", "p"], ["g", "jac_g_x"]),
            "hess_lag": ca.Function(
                "nlp_hess_l", [x, p, sigma, lam], [hessian], ["x", "p", "lam_f", "lam_g"], ["triu_hess_gamma_x_x"]
            ),
        }

    def solver(self, options: Mapping[str, Any]) -> ca.Function:
        """Return the IPOPT solver of the program."""
        problem: dict[str, Any] = {"x": self._x, "f": self._f, "g": self._g}
        return ca.nlpsol("livens", "ipopt", problem, {**self.derivatives, **options})


@dataclass(frozen=True, eq=False)
class BoundedProgram:
    """Blocks with bounds of the variables: a nonlinear program without the model, which other processes can receive."""

    title: str  # of the progress bar
    blocks: tuple[Block, ...]
    input_index: np.ndarray  # variables that are inputs, (..., n_inputs)
    lower: np.ndarray
    upper: np.ndarray

    @property
    def size(self) -> int:
        return len(self.lower)

    def evaluate(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Return all constraints and the cost at the variables w."""
        evaluated = [block.evaluate(w) for block in self.blocks]
        return np.concatenate([values.ravel() for values, _ in evaluated]), sum(cost for _, cost in evaluated)

    def scaled(self, w: np.ndarray) -> BlockProgram:
        """Return the program, scaled for a guess w: inputs by their bounds, the cost by its size."""
        scale = np.ones(self.size)
        if self.input_index.size:
            first = self.input_index.reshape(-1, self.input_index.shape[-1])[0]
            lower, upper = self.lower[first], self.upper[first]
            bounded = (lower > -INFINITE_BOUND) & (upper < INFINITE_BOUND)
            sizes = np.where(bounded, np.maximum(np.abs(lower), np.abs(upper)), 1.0)
            scale[self.input_index] = np.array([power_of_two(size) for size in sizes])
        cost = abs(self.evaluate(w)[1])
        return BlockProgram(self.size, self.blocks, scale, 1.0 / power_of_two(cost))


def power_of_two(size: float) -> float:
    """Return a power of two near a size: scaling by it does not round; 1 for zero and infinite sizes."""
    return float(2.0 ** np.round(np.log2(size))) if np.isfinite(size) and size > 0 else 1.0


def _triplets(matrix: ca.SX) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column indices of the nonzeros, in CasADi's column-major order."""
    rows, columns = matrix.sparsity().get_triplet()
    return np.array(rows, dtype=int), np.array(columns, dtype=int)


def _nonzeros(matrix: ca.SX) -> ca.SX:
    return ca.SX(matrix.nz[:]) if matrix.nnz() else ca.SX(0, 1)


def _mapped(function: ca.Function, count: int) -> ca.Function:
    return function if count == 1 else function.map(count)


def _indicator(rows: np.ndarray, n_rows: int) -> ca.DM:
    """Return the sparse 0-1 matrix that adds entry i of a vector to entry ``rows[i]`` of the result."""
    return ca.DM(ca.Sparsity.triplet(n_rows, len(rows), rows.tolist(), list(range(len(rows)))), 1.0)


def _gather(
    keys: Sequence[np.ndarray], values: Sequence[ca.MX], n_rows: int, n_columns: int
) -> tuple[ca.Sparsity, ca.MX]:
    """Return a sparse matrix from nonzeros with the keys ``column * n_rows + row``; equal keys are added."""
    if not keys:
        return ca.Sparsity(n_rows, n_columns), ca.MX(n_rows, n_columns)
    unique, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    sparsity = ca.Sparsity.triplet(n_rows, n_columns, (unique % n_rows).tolist(), (unique // n_rows).tolist())
    return sparsity, ca.MX(sparsity, _indicator(inverse, len(unique)) @ ca.vertcat(*values))
