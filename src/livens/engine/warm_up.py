"""Compilation of all loops that do not depend on a model, into the machine-code cache."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

from livens.engine.lowering.function import NativeFunction

#: Modules with compilation units of the time loops, and one function of each unit.
_UNITS = (
    ("livens.engine.newton.time_loop", "advance_fixed"),
    ("livens.engine.newton.time_loop", "_advance_adaptive"),
    ("livens.engine.newton.time_loop", "_tabulate"),
    ("livens.engine.newton.single_call", "_integrate_fixed"),
    ("livens.engine.newton.markowitz", "_choose_pivots"),
    ("livens.engine.observables.drift_monitor", "accumulate_states_native"),
    ("livens.engine.observables.element_sums", "_accumulate_elements"),
    ("livens.engine.trees.output", "advance_tree"),
    ("livens.engine.trees.lane_steps", "advance_in_lanes"),
    ("livens.engine.trees.lanes", "START"),
    ("livens.engine.assembled.compile_unit", "advance"),
    ("livens.engine.ensemble.lane_loop", "run_groups"),
    ("livens.engine.derivatives.sweeps", "_adjoint_sweep"),
    ("livens.engine.steppers.free_bodies", "advance_bodies"),
    ("livens.engine.collision", "contact_forces"),
)


def warm_up(report: Callable[[str], None] = lambda name: None) -> int:
    """Compile the model-independent time loops, or load them from the cache; return their number.

    Parameters
    ----------
    report : callable, optional
        Function of the name of each loop, called before it is compiled.

    Returns
    -------
    int
        Number of compiled functions.
    """
    count = 0
    for name, function in _functions():
        report(name)
        function.compile()
        count += 1
    return count


def _functions() -> Iterator[tuple[str, NativeFunction]]:
    for module, name in _UNITS:
        function = getattr(importlib.import_module(module), name)
        assert isinstance(function, NativeFunction)
        yield f"{module.removeprefix('livens.engine.')}.{name.strip('_')}", function
