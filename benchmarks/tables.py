"""Report of the benchmark as text tables."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.report import BenchReport, ComparisonRow

#: Width of wrapped text, and maximal width of tables, whose numbers are not cut.
_WIDTH, _WIDEST = 140, 1000


def show(report: BenchReport, console: Console | None = None) -> None:
    """Print all tables and the skipped codes."""
    tables = [t for t in (comparison(report), motion(report), scaling(report), work(report)) if t.row_count]
    if console is None:
        wide = Console(width=_WIDEST, highlight=False)
        console = Console(width=max([_WIDTH, *(wide.measure(t).maximum for t in tables)]), highlight=False)
    for table in tables:
        console.print(table)
    for peer, reason in report.skipped.items():
        console.print(f"{peer}: {reason}, skipped")
    missed = [
        f"{line.case} against {line.peer}" if line.peer else line.case for line in report.lines if line.met is False
    ]
    console.print(f"not as wanted: {', '.join(missed)}" if missed else "all as wanted")


def comparison(report: BenchReport) -> Table:
    about = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    rounds = "1 round" if report.rounds == 1 else f"{report.rounds} rounds"
    title = f"livens bench, best of {rounds} on one core; us: microseconds per step\n{about}"
    table = Table(title=title, box=SIMPLE, title_justify="left", title_style="")
    table.add_column("case", no_wrap=True)
    for name in ("ours", "peer", "ratio", "wanted"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("met", no_wrap=True)
    for line in report.lines:
        table.add_row(
            line.case,
            _quantity(line.ours, line.unit),
            _peer(line, report),
            _number(line.ratio),
            str(line.goal or ""),
            {True: "yes", False: "NO", None: ""}[line.met],
        )
    return table


def motion(report: BenchReport) -> Table:
    table = Table(
        title="the same motion? (double-four-bar at t = 10)", box=SIMPLE, title_justify="left", title_style=""
    )
    table.add_column("code", no_wrap=True)
    table.add_column("setting", no_wrap=True)
    for name in ("x4", "error of x4", "energy error"):
        table.add_column(name, justify="right", no_wrap=True)
    for m in report.motions:
        table.add_row(m.code, m.setting, f"{m.x4_end:.7f}", f"{m.x4_error:.1e}", f"{m.energy_error:.1e}")
    return table


def scaling(report: BenchReport) -> Table:
    title = "n-four-bar; to compile: cold, warm (kernels on disk)"
    table = Table(title=title, box=SIMPLE, title_justify="left", title_style="")
    for name in ("N", "steps", "us per step", "us per step and N", "cold s", "warm s"):
        table.add_column(name, justify="right", no_wrap=True)
    for p in report.points:
        table.add_row(
            str(p.N),
            str(p.steps),
            _number(p.us_per_step),
            _number(p.us_per_step / p.N),
            _number(p.cold_s),
            _number(p.warm_s),
        )
    return table


def work(report: BenchReport) -> Table:
    title = "work and precision: double-four-bar, error of P4 at t = 10 over wall time"
    table = Table(title=title, box=SIMPLE, title_justify="left", title_style="")
    for name in ("code", "setting"):
        table.add_column(name, no_wrap=True)
    for name in ("error", "ms"):
        table.add_column(name, justify="right", no_wrap=True)
    for w in report.works:
        table.add_row(w.code, w.setting, f"{w.error:.1e}", _number(1e3 * w.seconds))
    return table


def _peer(line: ComparisonRow, report: BenchReport) -> str:
    if line.peer is None:
        return ""
    if line.theirs is None:
        return f"{line.peer}: {report.skipped.get(line.peer, 'skipped')}"
    return f"{line.peer} {_quantity(line.theirs, line.unit)}"


def _quantity(value: float, unit: str) -> str:
    return f"{_number(value)} {unit}".rstrip()


def _number(value: float | None) -> str:
    """Return three significant digits, without exponent for moderate values."""
    if value is None:
        return ""
    if 100 <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:#.3g}".rstrip(".") if 1e-3 <= abs(value) < 100 else f"{value:.1e}"
