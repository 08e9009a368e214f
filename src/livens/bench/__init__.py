"""Side by side with other codes: what a step, a start and a long run cost, measured on this machine in one go."""

from __future__ import annotations

from pathlib import Path


def run_and_print(rounds: int = 5, as_json: bool = False, picture: Path | None = None, only: str = "") -> None:
    """Run all cases and print what came out, as tables or as one JSON object. Takes a few minutes.

    The diagram of work and precision goes to the file `picture`, if one is named; `only` are texts, with commas, of
    which a case has to have one in its name.
    """
    import json

    from livens.bench.progress import ProgressLine
    from livens.bench.schedule import run

    with ProgressLine() as progress:
        report = run(rounds, progress.say, only)
    if picture is not None and report.works:
        from livens.bench.diagram import work_precision
        from livens.plot.style import save

        save(work_precision(report), picture)
    if as_json:
        print(json.dumps(report.facts(), indent=2))
        return
    from livens.bench.tables import show

    show(report)
