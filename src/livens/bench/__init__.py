"""Side by side with other codes: what a step, a start and a long run cost, measured on this machine in one go."""

from __future__ import annotations


def run_and_print(rounds: int = 5, as_json: bool = False) -> None:
    """Run all cases and print what came out, as tables or as one JSON object. Takes a few minutes."""
    import json

    from livens.bench.progress import ProgressLine
    from livens.bench.schedule import run

    with ProgressLine() as progress:
        report = run(rounds, progress.say)
    if as_json:
        print(json.dumps(report.facts(), indent=2))
        return
    from livens.bench.tables import show

    show(report)
