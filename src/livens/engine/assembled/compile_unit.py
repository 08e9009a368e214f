"""Compile unit of the assembled tier: native entry points that are compiled as one module."""

from __future__ import annotations

from typing import Any, cast

from livens.engine.assembled.assembly import gather_sums, invert_bounds, run_element_batches, unknown_uncertainties
from livens.engine.assembled.nested_dissection import bfs, peel_leaves
from livens.engine.assembled.numeric_factorization import solve
from livens.engine.assembled.parallel_ops import update_bounds, worker_loop
from livens.engine.assembled.thread_team import stop
from livens.engine.assembled.time_loop import advance, finish_step, newton_solve, predict_step
from livens.engine.lowering.function import compile_unit
from livens.engine.observables import element_sums

compile_unit(
    *(advance, predict_step, newton_solve, finish_step, update_bounds, worker_loop, stop, solve),
    *(run_element_batches, gather_sums, unknown_uncertainties, invert_bounds, peel_leaves, bfs),
)


def prepare() -> None:
    """Compile the native functions, including those of the observables of large systems."""
    cast(Any, advance).compile()
    element_sums.precompile()
