"""What a run conserved, as a table for people."""

from __future__ import annotations

from livens import schemes
from livens.result import Result

#: Relative deviations up to this are round-off, for as many steps as runs usually have.
_ROUND_OFF = 1e-11


def print_report(result: Result) -> None:
    """Print what was run, what it cost and what was conserved."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    facts, statistics = result.facts, result.statistics
    steps = max(statistics.steps, 1)
    console.print(
        f"[bold]{facts.problem or 'system'}[/] with {facts.scheme}, h = {facts.h:g}, "
        f"t = {facts.t0:g} to {result.t[-1]:g}"
    )
    console.print(
        f"{statistics.steps} steps in {statistics.wall_s:.3g} s ({statistics.wall_s / steps * 1e6:.2f} us per step, "
        f"{statistics.newton_iterations / steps:.2f} Newton corrections each), "
        f"ready to run after {statistics.compile_s:.2f} s"
    )
    if result.message:
        console.print(result.message)
    table = Table("quantity", "largest deviation", "", title="What was conserved")
    for quantity, deviation, promised in rows(result):
        table.add_row(quantity, f"{deviation:.1e}", verdict(deviation, promised))
    console.print(table)
    if result.path is not None:
        console.print(f"kept in {result.path}")


def rows(result: Result) -> list[tuple[str, float, bool]]:
    """Quantity, largest deviation over every step, and whether the scheme promises to conserve it."""
    summary, conserves = result.summary, schemes.get(result.facts.scheme).conserves
    energy = summary.energy.replace("_", " ")
    table = [
        (f"{energy}, relative", summary.max_energy_drift, summary.energy in conserves),
        (f"{energy}, increment per step", summary.max_energy_increment, summary.energy in conserves),
    ]
    if result.facts.constraint_names:
        table.append(("constraints g(q)", summary.max_constraint, "constraint" in conserves))
        table.append(("hidden constraints G(q) v", summary.max_velocity_constraint, "velocity_constraint" in conserves))
    for name, drift in summary.momentum_drift.items():
        table.append((f"{name.replace('_', ' ')}, relative", drift, name in conserves))
    return table


def verdict(deviation: float, promised: bool) -> str:
    """A word on a deviation."""
    if deviation <= _ROUND_OFF:
        return "round-off"
    return "MORE THAN ROUND-OFF" if promised else "not conserved by the scheme"
