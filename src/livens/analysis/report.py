"""What a run conserved, as a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from livens.analysis.accuracy import affordable
from livens.analysis.accuracy.estimate import NOT_RESOLVED, UNTIL
from livens.analysis.step_sizes import fictive, step_sizes
from livens.analysis.verdicts import NOT_AS_PROMISED, Row, rows
from livens.results.result import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["Row", "print_report", "rows"]

#: Where there is no terminal to ask, lines may be so long.
_WIDTH = 140
#: How the line on accuracy is printed: what is wrong is never to be overlooked.
_STYLES = {NOT_RESOLVED: "bold red", UNTIL: "yellow"}
#: More events than this are only counted.
_EVENTS = 10


def console() -> Console:
    """Where tables go: as wide as the terminal, or wide enough."""
    from rich.console import Console

    wide = Console(highlight=False)
    return wide if wide.is_terminal else Console(highlight=False, width=_WIDTH)


def print_report(result: Result, *, accuracy: bool = True) -> list[Row]:
    """Print what was run, what it cost, how accurate it is and what was conserved; the rows of the table come back.

    Companions that tell the accuracy take a few seconds at most; ``accuracy=False`` leaves them out.
    """
    out = console()
    facts, statistics = result.facts, result.statistics
    steps = max(statistics.steps, 1)
    out.print(
        f"[bold]{facts.problem or 'system'}[/] with {facts.scheme}, {step_words(result)}, "
        f"t = {facts.t0:g} to {float(result.last('t')):g}"
    )
    out.print(
        f"{statistics.steps} steps in {statistics.wall_s:.3g} s ({statistics.wall_s / steps * 1e6:.2f} us per step, "
        f"{statistics.newton_iterations / steps:.2f} Newton corrections each), "
        f"ready to run after {statistics.compile_s:.2f} s"
    )
    sizes = step_sizes(result)
    if sizes is not None:
        out.print(size_words(sizes))
    if result.message:
        out.print(result.message, markup=False)
    for event in result.events[:_EVENTS]:
        out.print(f"{event.name} at t = {event.t:.9g}", markup=False)
    if len(result.events) > _EVENTS:
        out.print(f"... and {len(result.events) - _EVENTS} more events")
    if accuracy:
        estimate = affordable(result)
        out.print(estimate.words(), style=_STYLES.get(estimate.verdict), markup=False)
    table = rows(result)
    out.print(as_table(table) if table else "the model says of nothing that it is conserved", markup=False)
    if result.path is not None:
        out.print(f"kept in {result.path}", markup=False)
    return table


def step_words(result: Result) -> str:
    """What h is in this run."""
    what = "first h" if result.facts.control else "h in fictive time" if fictive(result) else "h"
    return f"{what} = {result.facts.h:g}"


def size_words(sizes: dict[str, Any]) -> str:
    """The sizes of steps that differ, in a sentence."""
    words = []
    if sizes["smallest"] is not None:
        words.append(f"steps from {sizes['smallest']:.3g} to {sizes['largest']:.3g}")
    if sizes["mean"] is not None:
        words.append(f"{sizes['mean']:.3g} on average")
    return ", ".join([*words, f"{sizes['rejected']} rejected"])


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
