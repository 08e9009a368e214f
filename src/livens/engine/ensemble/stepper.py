"""Ensemble integration in SIMD lanes: eight or sixteen trajectories share each instruction, threads share the work."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.newton_kernels import first_correction_kernel, masked_correction_kernel
from livens.engine.codegen.predictor_kernel import predictor_kernel
from livens.engine.codegen.step_kernels import (
    initial_guess_kernel,
    inv_roundoff_kernel,
    residual_kernel,
    state_update_kernel,
)
from livens.engine.codegen.unrolled_lu import PivotOrder
from livens.engine.compiled_step import CompiledStep
from livens.engine.ensemble.lane_loop import LaneKernels
from livens.engine.ensemble.lane_run import ARRAYS, EnsembleArrays, EnsembleRun, HistogramSpec, InputTable, TimeGrid
from livens.engine.ensemble.monitor_kernel import (
    EnsembleMonitorSpec,
    monitor_init_kernel,
    monitor_kernel,
)
from livens.errors import InputError

#: Largest instruction count of steps in sixteen lanes, which hide latencies; longer steps would spill registers.
_MAX_INSTRUCTIONS_16 = 1000
#: Number of members from which `unpermute` uses several threads: it is limited by memory latency.
_PARALLEL_UNPERMUTE_FROM = 10_000


def choose_width(compiled: CompiledStep) -> int:
    """Return the number of SIMD lanes; it depends on the equations only."""
    e = compiled.flat_equations
    graphs = (e.newton_function, e.final_state_function, e.residual_function) if e.size else (e.final_state_function,)
    return 16 if sum(graph.n_instructions() for graph in graphs) < _MAX_INSTRUCTIONS_16 else 8


def array_shapes(
    n_members: int, grid: TimeGrid, bins: Sequence[HistogramSpec], n_columns: int, n_maxima: int, n_reduced: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of `EnsembleArrays` for numbers of monitored columns, maxima and statistics."""
    n_counts = 2 + max((spec.count for spec in bins), default=-2)
    widths = {"first": n_columns, "largest": n_maxima}
    rows = {name: (n_members, widths.get(name, n_reduced)) for name in (*widths, "sums", "lowest", "highest")}
    single = dict.fromkeys(("corrections", "steps", "trusted"), (n_members,))
    states, counts = (n_members, grid.n_rows, len(grid.stored)), (n_members, len(bins), n_counts)
    return {"states": states, "counts": counts, **rows, **single}


class EnsembleStepper:
    """Compiled step for an ensemble in SIMD lanes; thread-safe."""

    def __init__(
        self, compiled: CompiledStep, order: PivotOrder | None, monitor_spec: EnsembleMonitorSpec, width: int
    ) -> None:
        self.compiled, self.order, self.monitor_spec, self.width = compiled, order, monitor_spec, width
        e, codes = compiled.flat_equations, dict[str, NativeCode]()
        if e.external_force is not None:
            raise InputError("an ensemble in SIMD lanes requires symbolic forces, but the model has an ExternalForce")
        if e.size:
            assert order is not None
            codes = {
                "first_correction": first_correction_kernel(e, order, width),
                "masked_correction": masked_correction_kernel(e, order, width),
                "residual": residual_kernel(e, width),
                "predict": predictor_kernel(e, width),
                "inv_roundoff": inv_roundoff_kernel(e, width),
                "initial_guess": initial_guess_kernel(e, width),
            }
        else:
            codes = {"update_state": state_update_kernel(e, width)}
        codes |= {
            "monitor": monitor_kernel(monitor_spec, width),
            "monitor_init": monitor_init_kernel(monitor_spec, width),
        }
        self._codes = codes  # keeps the addresses valid
        names = [item.name for item in dataclasses.fields(LaneKernels)]
        self._kernels = LaneKernels(*(codes[name].address if name in codes else 0 for name in names))

    def shapes(self, n_members: int, grid: TimeGrid, bins: Sequence[HistogramSpec]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the result arrays for a number of members."""
        spec, offsets = self.monitor_spec, self.monitor_spec.offsets
        return array_shapes(n_members, grid, bins, spec.n_columns, offsets.sums - offsets.maxima, spec.n_reduced)

    def integrate(
        self,
        z: np.ndarray,
        k: np.ndarray,
        grid: TimeGrid,
        n_threads: int = 1,
        bins: Sequence[HistogramSpec] = (),
        on_progress: Callable[[int], None] | None = None,
        inputs: InputTable | None = None,
    ) -> EnsembleArrays:
        """Integrate all members from states z with parameters k, and inputs over time, over the time grid.

        `on_progress` is called with the number of completed members.
        """
        return EnsembleRun(self, z, k, grid, n_threads, bins, inputs).run(on_progress)


def unpermute(arrays_in: EnsembleArrays, order: Sequence[int] | np.ndarray, n_threads: int = 1) -> EnsembleArrays:
    """Undo the permutation of the members."""
    inverse = np.empty(len(order), dtype=np.intp)
    inverse[order] = np.arange(len(order))
    source = {name: getattr(arrays_in, name) for name in ARRAYS}
    arrays: dict[str, Any] = {name: np.empty(array.shape, array.dtype) for name, array in source.items()}
    size = -(-len(inverse) // n_threads)

    def permute_block(first: int) -> None:
        block = slice(first, first + size)
        for name, array in source.items():
            np.take(array, inverse[block], axis=0, out=arrays[name][block], mode="clip")

    if n_threads > 1 and len(inverse) >= _PARALLEL_UNPERMUTE_FROM:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(permute_block, range(0, len(inverse), size)))
    else:
        for start in range(0, len(inverse), size):
            permute_block(start)
    failures = {int(order[member]): reason for member, reason in arrays_in.failures.items()}
    return dataclasses.replace(arrays_in, failures=failures, **arrays)
