"""Report of a run: cost, accuracy and conserved quantities, as text, HTML and table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from livens.analysis.accuracy import estimate_within_budget
from livens.analysis.accuracy.estimate import NOT_RESOLVED, RESOLVED_UNTIL, Estimate
from livens.analysis.conservation import NOT_AS_GUARANTEED, ConservationRow, conservation_rows
from livens.analysis.passivity import passivity
from livens.analysis.singular_configurations import singular_messages
from livens.analysis.step_sizes import step_sizes, uses_fictive_time
from livens.errors import InputError
from livens.models.descriptor import DescriptorModel
from livens.results.result import Result
from livens.scene import html

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["ConservationRow", "Report", "conservation_rows", "print_report", "report"]

#: Line width in characters if the output is not a terminal.
_WIDTH = 140
#: Print style of the accuracy line by verdict.
_STYLES = {NOT_RESOLVED: "bold red", RESOLVED_UNTIL: "yellow"}
#: Maximum number of events that are listed.
_MAX_EVENTS = 10
_NO_CONSERVED_QUANTITY = "the model defines no conserved quantities"


def console() -> Console:
    """Return a console as wide as the terminal, or of fixed width without a terminal."""
    from rich.console import Console

    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=_WIDTH)


def print_report(result: Result, *, accuracy: bool | Estimate = True) -> list[ConservationRow]:
    """Print the scheme, cost, accuracy and conserved quantities of a run; return the rows of the table.

    The refined runs of the accuracy estimate take a few seconds at most. ``accuracy=False`` omits the estimate; an
    existing `Estimate` is used as it is.
    """
    summary, out = report(result, accuracy=accuracy), console()
    headline, *details = summary.lines
    name, rest = headline.split(" with ", 1)
    out.print(f"[bold]{name}[/] with {rest}")
    for line in details:
        out.print(line, markup=False)
    if summary.accuracy is not None:
        out.print(summary.accuracy.summary_line(), style=_STYLES.get(summary.accuracy.verdict), markup=False)
    out.print(as_table(summary.rows) if summary.rows else _NO_CONSERVED_QUANTITY, markup=False)
    if result.path is not None:
        out.print(f"saved in {result.path}", markup=False)
    return summary.rows


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
    rows: list[ConservationRow]

    @property
    def as_guaranteed(self) -> bool:
        """True if all quantities that the scheme guarantees to conserve were conserved to round-off."""
        return all(row.holds for row in self.rows)

    def __str__(self) -> str:
        lines = [*self.lines, *([] if self.accuracy is None else [self.accuracy.summary_line()])]
        widths = [max(map(len, column)) for column in zip(*map(_cells, self.rows), strict=True)]
        for row in self.rows:
            lines.append("  ".join(text.ljust(width) for text, width in zip(_cells(row), widths, strict=True)).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [html.escape(line) for line in self.lines]
        if self.accuracy is not None:
            style = {NOT_RESOLVED: "color:#c1272d;font-weight:bold", RESOLVED_UNTIL: "color:#b8860b"}.get(
                self.accuracy.verdict, ""
            )
            parts.append(
                f'<span class="livens-accuracy" style="{style}">{html.escape(self.accuracy.summary_line())}</span>'
            )
        heads = ("quantity", "at the start", "worst deviation", "drift per unit time", "")
        marked = [row.verdict == NOT_AS_GUARANTEED for row in self.rows]
        table = (
            html.table(heads, map(_cells, self.rows), highlighted=marked)
            if self.rows
            else html.escape(_NO_CONSERVED_QUANTITY)
        )
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
    >>> report.as_guaranteed, report.rows[0].quantity
    (True, 'generalized energy')
    """
    info, statistics = result.info, result.statistics
    steps = max(statistics.steps, 1)
    lines = [
        f"{info.problem or info.name or 'system'} with {info.scheme}, {step_description(result)}, "
        f"t = {info.t0:g} to {float(result.last('t')):g}",
        f"{statistics.steps} steps in {statistics.wall_s:.3g} s ({statistics.wall_s / steps * 1e6:.2f} us per step, "
        f"{statistics.newton_iterations / steps:.2f} Newton corrections each), "
        f"ready to run after {statistics.compile_s:.2f} s",
    ]
    sizes = step_sizes(result)
    if sizes is not None:
        lines.append(step_size_summary(sizes))
    if result.message:
        lines.append(result.message)
    lines += [f"{event.name} at t = {event.t:.9g}" for event in result.events[:_MAX_EVENTS]]
    if len(result.events) > _MAX_EVENTS:
        lines.append(f"... and {len(result.events) - _MAX_EVENTS} more events")
    lines += singular_messages(result)
    lines += _index_lines(result)
    verdict = passivity(result)
    lines += [] if verdict is None else [str(verdict)]
    estimate = accuracy if isinstance(accuracy, Estimate) else estimate_within_budget(result) if accuracy else None
    return Report(lines, estimate, conservation_rows(result))


def _index_lines(result: Result) -> list[str]:
    """Return a line if the matrix pencil does not determine the index of the equations."""
    try:
        model = result.system
    except InputError:  # file of a user-defined system
        return []
    if not isinstance(model, DescriptorModel) or model.is_ode or model.pencil.determines_index:
        return []
    if model.index is None:
        return ["the index of the equations is not known: the kernel of E depends on time"]
    return [
        f"the equations have index {model.index} along time, but the kernel of E depends on time: "
        "orders of methods are not known"
    ]


def step_description(result: Result) -> str:
    """Return the step size of a run with its meaning, such as ``h = 0.01``."""
    symbol = "first h" if result.info.control else "h in fictive time" if uses_fictive_time(result) else "h"
    return f"{symbol} = {result.info.h:g}"


def step_size_summary(sizes: dict[str, object]) -> str:
    """Return the range and mean of varying step sizes as text."""
    parts = []
    if sizes["smallest"] is not None:
        parts.append(f"steps from {sizes['smallest']:.3g} to {sizes['largest']:.3g}")
    if sizes["mean"] is not None:
        parts.append(f"{sizes['mean']:.3g} on average")
    return ", ".join([*parts, f"{sizes['rejected']} rejected"])


def as_table(report: list[ConservationRow]) -> Table:
    """Return the rows as a printable table. Deviations and drifts of energies and momenta are relative."""
    from rich.table import Table

    table = Table(title="Conserved quantities")
    table.add_column("quantity", no_wrap=True)
    for name in ("at the start", "worst deviation", "drift per unit time"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in report:
        table.add_row(*_cells(row), style="bold red" if row.verdict == NOT_AS_GUARANTEED else None)
    return table


def _cells(row: ConservationRow) -> tuple[str, ...]:
    return row.quantity, _format_initial(row), f"{row.deviation:.1e}", format_drift(row), row.verdict


def _format_initial(row: ConservationRow) -> str:
    return "" if row.initial is None else f"{row.initial:.6g}"


def format_drift(row: ConservationRow) -> str:
    """Return drift and uncertainty as text, such as ``+1.2e-05 ± 3e-06``."""
    if row.drift is None or row.drift_uncertainty is None:
        return ""
    return f"{row.drift:+.1e} ± {row.drift_uncertainty:.0e}"


Result.attach("report", report)
