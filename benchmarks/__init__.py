"""Benchmarks against other codes: cost of steps, start-up and long runs, measured on one machine."""

from __future__ import annotations

from pathlib import Path


def run_and_print(rounds: int = 5, as_json: bool = False, picture: Path | None = None, only: str = "") -> None:
    """Run all cases and print the results as tables or as one JSON object; takes a few minutes.

    The work-precision diagram is written to the file `picture`, if given. `only` is a comma-separated list of texts; a
    case runs if its name contains one of them.
    """
    import json

    from benchmarks.progress import ProgressLine
    from benchmarks.schedule import run_benchmark

    with ProgressLine() as progress:
        report = run_benchmark(rounds, progress.show, only)
    if picture is not None and report.works:
        from benchmarks.diagram import work_precision
        from livens.plot.style import save

        save(work_precision(report), picture)
    if as_json:
        print(json.dumps(report.facts(), indent=2))
        return
    from benchmarks.tables import show

    show(report)
