"""A run of livens in a process of its own: how long until the first step, how long the rest, how much memory."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from livens.bench.program import run_module

_STATUS = Path("/proc/self/status")


def fresh_run(
    problem: str,
    *,
    steps: int = 1,
    every: int = 1,
    repeats: int = 1,
    cache: str | None = None,
    to_file: bool = False,
    threads: int = 1,
    **options: Any,
) -> dict[str, float]:
    """A problem run with its usual scheme and step in a new process, which keeps its kernels in the folder `cache`.

    Gives ``first_step_s``, from loading the problem to the end of one step, and ``compile_s``, the part of it that
    the run calls so; then ``us_per_step`` of the fastest of `repeats` runs of `steps` steps, and ``peak_mb``, the
    most memory ever held. With `to_file` the run is written to a file, and that is part of its time. What the run was
    like is said by ``corrections`` per step, ``energy`` (its largest deviation, relative), ``constraint`` (the largest
    gap), and ``unsolved`` (steps that the native code did not solve). Several threads have as many cores.
    """
    asked = dict(problem=problem, steps=steps, every=every, repeats=repeats, to_file=to_file, options=options)
    asked["threads"] = threads
    environment = {"LIVENS_CACHE_DIR": cache} if cache is not None else {}
    return run_module(__name__, json.dumps(asked), environment=environment)


def peak_mb() -> float:
    """The most memory this process ever held.

    Linux hands the peak of getrusage down from a process to the program that it starts, so there the peak of the
    program alone is read from its status.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) * 1024 / 1e6
    import resource  # not on every system

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def main(asked: dict[str, Any]) -> dict[str, float]:
    import livens as lv

    # another model, so that imports are done and the compiled loops are loaded
    for tier in ("fused", "assembled"):
        lv.simulate(lv.problems.load("spring-pendulum", t_end=0.01), tier=tier)
    threads = asked.get("threads", 1)
    if threads > 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(threads))
    start = time.perf_counter()
    problem = lv.problems.load(asked["problem"], **asked["options"])
    first = lv.simulate(problem, t_end=problem.h, threads=threads)
    found = {"first_step_s": time.perf_counter() - start, "compile_s": first.statistics.compile_s}
    if asked.get("to_file"):
        wall = min(_written(problem, asked) for _ in range(asked["repeats"]))
    else:
        t_end = asked["steps"] * problem.h
        runs = (
            lv.simulate(problem, t_end=t_end, every=asked["every"], threads=threads) for _ in range(asked["repeats"])
        )
        best = min(runs, key=lambda run: run.statistics.wall_s)
        wall = best.statistics.wall_s
        found["corrections"] = best.statistics.newton_iterations / best.statistics.steps
        found["energy"] = best.summary.max_energy_drift
        found["constraint"] = best.summary.max_constraint
        found["unsolved"] = best.statistics.reference_steps
    return {**found, "us_per_step": wall / asked["steps"] * 1e6, "peak_mb": peak_mb()}


def _written(problem: Any, asked: dict[str, Any]) -> float:
    """Seconds for a run in a file, until all of it is there."""
    import livens as lv

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        lv.simulate(
            problem, t_end=asked["steps"] * problem.h, every=asked["every"], out=Path(folder) / "run.h5", progress=False
        )
        return time.perf_counter() - start


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
