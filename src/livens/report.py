"""What a run conserved, as a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livens.conserved import NOT_AS_PROMISED, Row, rows
from livens.result import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["Row", "print_report", "rows"]

#: Where there is no terminal to ask, lines may be so long.
_WIDTH = 140


def console() -> Console:
    """Where tables go: as wide as the terminal, or wide enough."""
    from rich.console import Console

    wide = Console(highlight=False)
    return wide if wide.is_terminal else Console(highlight=False, width=_WIDTH)


def print_report(result: Result) -> list[Row]:
    """Print what was run, what it cost and what was conserved; the rows of the table come back."""
    out = console()
    facts, statistics = result.facts, result.statistics
    steps = max(statistics.steps, 1)
    out.print(
        f"[bold]{facts.problem or 'system'}[/] with {facts.scheme}, h = {facts.h:g}, "
        f"t = {facts.t0:g} to {float(result.last('t')):g}"
    )
    out.print(
        f"{statistics.steps} steps in {statistics.wall_s:.3g} s ({statistics.wall_s / steps * 1e6:.2f} us per step, "
        f"{statistics.newton_iterations / steps:.2f} Newton corrections each), "
        f"ready to run after {statistics.compile_s:.2f} s"
    )
    if result.message:
        out.print(result.message, markup=False)
    table = rows(result)
    out.print(as_table(table))
    if result.path is not None:
        out.print(f"kept in {result.path}", markup=False)
    return table


def as_table(report: list[Row]) -> Table:
    """The rows as a table to print. Deviations and drifts of energies and momenta are relative."""
    from rich.table import Table

    table = Table(title="What was conserved")
    table.add_column("quantity", no_wrap=True)
    for name in ("at the start", "worst deviation", "drift per unit time"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in report:
        style = "bold red" if row.verdict == NOT_AS_PROMISED else None
        deviation = f"{row.deviation:.1e}"
        table.add_row(row.quantity, _start(row), deviation, drift_words(row), row.verdict, style=style)
    return table


def _start(row: Row) -> str:
    return "" if row.start is None else f"{row.start:.6g}"


def drift_words(row: Row) -> str:
    """``+1.2e-05 ± 3e-06``."""
    if row.drift is None or row.drift_uncertainty is None:
        return ""
    return f"{row.drift:+.1e} ± {row.drift_uncertainty:.0e}"
