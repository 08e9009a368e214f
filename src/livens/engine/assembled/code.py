"""Compile unit of the assembled tier: native entry points that are compiled as one module."""

from __future__ import annotations

from typing import Any, cast

from livens.engine import element_table
from livens.engine.assembled.assembly import errors_of, gather_sums, reciprocals, run_pieces
from livens.engine.assembled.dissection import spread, strip
from livens.engine.assembled.fronts import solve_fronts
from livens.engine.assembled.loop import advance, finish_step, solve_step, start_step
from livens.engine.assembled.parts import bounds, serve
from livens.engine.assembled.team import stop
from livens.engine.lowering.function import together

together(
    *(advance, start_step, solve_step, finish_step, bounds, serve, stop, solve_fronts),
    *(run_pieces, gather_sums, errors_of, reciprocals, strip, spread),
)


def prepare() -> None:
    """Compile the native functions, including those of the observables of large systems."""
    cast(Any, advance).compile()
    element_table.prepare()
