"""Report of a run: cost, accuracy and conserved quantities, as text, HTML and table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens.analysis.accuracy import affordable
from livens.analysis.accuracy.estimate import NOT_RESOLVED, UNTIL, Estimate
from livens.analysis.singular import passed
from livens.analysis.step_sizes import fictive, step_sizes
from livens.analysis.verdicts import NOT_AS_PROMISED, Row, rows
from livens.models import html
from livens.results.result import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["Report", "Row", "print_report", "report", "rows"]

#: Line width in characters if the output is not a terminal.
_WIDTH = 140
#: Print style of the accuracy line by verdict.
_STYLES = {NOT_RESOLVED: "bold red", UNTIL: "yellow"}
#: Maximum number of events that are listed.
_EVENTS = 10
_NOTHING = "the model defines no conserved quantities"


def console() -> Console:
    """Return a console as wide as the terminal, or of fixed width without a terminal."""
    from rich.console import Console

    wide = Console(highlight=False)
    return wide if wide.is_terminal else Console(highlight=False, width=_WIDTH)


def print_report(result: Result, *, accuracy: bool | Estimate = True) -> list[Row]:
    """Print the scheme, cost, accuracy and conserved quantities of a run; return the rows of the table.

    The refined runs of the accuracy estimate take a few seconds at most. ``accuracy=False`` omits the estimate; an
    existing `Estimate` is used as it is.
    """
    found, out = report(result, accuracy=accuracy), console()
    first, *others = found.lines
    name, rest = first.split(" with ", 1)
    out.print(f"[bold]{name}[/] with {rest}")
    for line in others:
        out.print(line, markup=False)
    if found.accuracy is not None:
        out.print(found.accuracy.words(), style=_STYLES.get(found.accuracy.verdict), markup=False)
    out.print(as_table(found.rows) if found.rows else _NOTHING, markup=False)
    if result.path is not None:
        out.print(f"saved in {result.path}", markup=False)
    return found.rows


@dataclass(frozen=True)
class Report:
    """Report of a run: scheme and cost, accuracy, and conserved quantities; returned by `run.report()`.

    Parameters
    ----------
    lines : list of str
        Description of the run, its cost and its events.
    accuracy : Estimate or None
        Error estimate.
    rows : list of ConservationRow
        Rows of the table of conserved quantities.
    """

    lines: list[str]
    accuracy: Estimate | None
    rows: list[Row]

    @property
    def as_promised(self) -> bool:
        """True if all quantities that the scheme guarantees to conserve were conserved to round-off."""
        return all(row.holds for row in self.rows)

    def __str__(self) -> str:
        lines = [*self.lines, *([] if self.accuracy is None else [self.accuracy.words()])]
        widths = [max(map(len, column)) for column in zip(*map(_cells, self.rows), strict=True)]
        for row in self.rows:
            lines.append("  ".join(text.ljust(width) for text, width in zip(_cells(row), widths, strict=True)).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [html.cell(line) for line in self.lines]
        if self.accuracy is not None:
            style = {NOT_RESOLVED: "color:#c1272d;font-weight:bold", UNTIL: "color:#b8860b"}.get(
                self.accuracy.verdict, ""
            )
            parts.append(f'<span class="livens-accuracy" style="{style}">{html.cell(self.accuracy.words())}</span>')
        heads = ("quantity", "at the start", "worst deviation", "drift per unit time", "")
        marked = [row.verdict == NOT_AS_PROMISED for row in self.rows]
        table = html.table(heads, map(_cells, self.rows), marked=marked) if self.rows else html.cell(_NOTHING)
        return f'<div class="livens-report"><p>{"<br>".join(parts)}</p>{table}</div>'


def report(result: Result, *, accuracy: bool | Estimate = True) -> Report:
    """Return the report of a run, for notebooks and as text.

    Parameters
    ----------
    result : Result
        Run to report on.
    accuracy : bool or Estimate, default True
        Estimate the accuracy by refined runs, which take a few seconds at most. An existing estimate is used as it is.

    Returns
    -------
    Report
        Cost, accuracy and conserved quantities.

    Examples
    --------

    >>> import livens as lv
    >>> report = lv.simulate(lv.problems.load("simple-pendulum"), h=0.01, t_end=1.0).report(accuracy=False)
    >>> report.as_promised, report.rows[0].quantity
    (True, 'generalized energy')
    """
    facts, statistics = result.facts, result.statistics
    steps = max(statistics.steps, 1)
    lines = [
        f"{facts.problem or 'system'} with {facts.scheme}, {step_words(result)}, "
        f"t = {facts.t0:g} to {float(result.last('t')):g}",
        f"{statistics.steps} steps in {statistics.wall_s:.3g} s ({statistics.wall_s / steps * 1e6:.2f} us per step, "
        f"{statistics.newton_iterations / steps:.2f} Newton corrections each), "
        f"ready to run after {statistics.compile_s:.2f} s",
    ]
    sizes = step_sizes(result)
    if sizes is not None:
        lines.append(size_words(sizes))
    if result.message:
        lines.append(result.message)
    lines += [f"{event.name} at t = {event.t:.9g}" for event in result.events[:_EVENTS]]
    if len(result.events) > _EVENTS:
        lines.append(f"... and {len(result.events) - _EVENTS} more events")
    lines += passed(result)
    estimate = accuracy if isinstance(accuracy, Estimate) else affordable(result) if accuracy else None
    return Report(lines, estimate, rows(result))


def step_words(result: Result) -> str:
    """Return the step size of a run with its meaning, such as ``h = 0.01``."""
    what = "first h" if result.facts.control else "h in fictive time" if fictive(result) else "h"
    return f"{what} = {result.facts.h:g}"


def size_words(sizes: dict[str, Any]) -> str:
    """Return the range and mean of varying step sizes as text."""
    words = []
    if sizes["smallest"] is not None:
        words.append(f"steps from {sizes['smallest']:.3g} to {sizes['largest']:.3g}")
    if sizes["mean"] is not None:
        words.append(f"{sizes['mean']:.3g} on average")
    return ", ".join([*words, f"{sizes['rejected']} rejected"])


def as_table(report: list[Row]) -> Table:
    """Return the rows as a printable table. Deviations and drifts of energies and momenta are relative."""
    from rich.table import Table

    table = Table(title="Conserved quantities")
    table.add_column("quantity", no_wrap=True)
    for name in ("at the start", "worst deviation", "drift per unit time"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in report:
        table.add_row(*_cells(row), style="bold red" if row.verdict == NOT_AS_PROMISED else None)
    return table


def _cells(row: Row) -> tuple[str, ...]:
    return row.quantity, _start(row), f"{row.deviation:.1e}", drift_words(row), row.verdict


def _start(row: Row) -> str:
    return "" if row.start is None else f"{row.start:.6g}"


def drift_words(row: Row) -> str:
    """Return drift and uncertainty as text, such as ``+1.2e-05 ± 3e-06``."""
    if row.drift is None or row.drift_uncertainty is None:
        return ""
    return f"{row.drift:+.1e} ± {row.drift_uncertainty:.0e}"


Result.attach("report", report)
