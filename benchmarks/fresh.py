"""Cold start: run of livens in a new process, with time to the first step, time per step and memory."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.program import run_module

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
    """Run a problem with its default scheme and step in a new process, with the kernel cache in the folder `cache`.

    Returns ``first_step_s``, from loading the problem to the end of one step, and its part ``compile_s``;
    ``us_per_step`` of the fastest of `repeats` runs of `steps` steps, and ``peak_mb``, the peak memory. With `to_file`
    the run is written to a file, which is part of the time. ``corrections`` are Newton corrections per step, ``energy``
    is the largest relative energy deviation, ``constraint`` the largest violation, and ``unsolved`` counts steps that
    the native code did not solve. With several threads, as many cores are used.
    """
    request = dict(problem=problem, steps=steps, every=every, repeats=repeats, to_file=to_file, options=options)
    request["threads"] = threads
    environment = {"LIVENS_CACHE_DIR": cache} if cache is not None else {}
    return run_module(__name__, json.dumps(request), environment=environment)


def peak_mb() -> float:
    """Return the peak memory of this process in MB.

    On Linux the peak of getrusage is inherited across exec, so the peak is read from the status of the process.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) * 1024 / 1e6
    import resource  # not available on all systems

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def main(request: dict[str, Any]) -> dict[str, float]:
    import livens as lv

    # run another model first: imports and loading of the compiled loops are not timed
    for tier in ("fused", "assembled"):
        lv.simulate(lv.problems.load("spring-pendulum", t_end=0.01), tier=tier)
    threads = request.get("threads", 1)
    if threads > 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(threads))
    start_time = time.perf_counter()
    problem = lv.problems.load(request["problem"], **request["options"])
    first_run = lv.simulate(problem, t_end=problem.h, threads=threads)
    result = {"first_step_s": time.perf_counter() - start_time, "compile_s": first_run.statistics.compile_s}
    if request.get("to_file"):
        wall = min(_written(problem, request) for _ in range(request["repeats"]))
    else:
        t_end = request["steps"] * problem.h
        runs = (
            lv.simulate(problem, t_end=t_end, every=request["every"], threads=threads)
            for _ in range(request["repeats"])
        )
        best = min(runs, key=lambda run: run.statistics.wall_s)
        wall = best.statistics.wall_s
        result["corrections"] = best.statistics.newton_iterations / best.statistics.steps
        result["energy"] = best.summary.max_energy_drift
        result["constraint"] = best.summary.max_constraint
        result["unsolved"] = best.statistics.reference_steps
    return {**result, "us_per_step": wall / request["steps"] * 1e6, "peak_mb": peak_mb()}


def _written(problem: Any, request: dict[str, Any]) -> float:
    """Return the time in s of a run that is written to a file."""
    import livens as lv

    with tempfile.TemporaryDirectory() as folder:
        start_time = time.perf_counter()
        lv.simulate(
            problem,
            t_end=request["steps"] * problem.h,
            every=request["every"],
            out=Path(folder) / "run.h5",
            progress=False,
        )
        return time.perf_counter() - start_time


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
