"""SIGKILL at random times: all step controls and tiers, with events, controllers, stops, contacts, compressed or not.

Runs are child processes of a process that has compiled all steps. The times of the signals are uniform over the
duration of a run. Files are resumed, and the runs killed again, until they are complete; then they are compared byte
for byte with an undisturbed run.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import livens as lv
from livens.results import recorder
from livens.run import startup
from torture.findings import Findings

EVENTS = (lv.Event(lambda q: q[0] + 0.3, name="turning"), lv.Event(lambda q: q[0] - 0.1, name="crossing", direction=-1))
KILLED, DONE = -signal.SIGKILL, 0


@functools.cache
def oscillator() -> lv.System:
    return lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2 + q[0] ** 4 / 4)


@functools.cache
def problem(name: str) -> lv.Problem:
    return lv.problems.load(name)


def equal(**options: Any) -> lv.Result:
    return lv.simulate(oscillator(), [1.0], [0.0], scheme="gauss-2", h=0.005, t_end=4.0123, **options)


def controlled(**options: Any) -> lv.Result:
    control = lv.StepControl(tolerance=1e-9, largest=0.05)
    return lv.simulate(oscillator(), [1.0], [0.0], scheme="gauss-3", h=0.001, t_end=20.0, control=control, **options)


def fictive(**options: Any) -> lv.Result:
    return lv.simulate(problem("kepler"), scheme="sundman", h=0.01, t_end=6.0, **options)


def linkage(**options: Any) -> lv.Result:
    return lv.simulate(problem("double-four-bar"), h=1e-3, t_end=0.4, **options)


def reference(**options: Any) -> lv.Result:
    return lv.simulate(oscillator(), [1.0], [0.0], h=0.02, t_end=1.0, tier="reference", **options)


def taylor(**options: Any) -> lv.Result:
    control = lv.StepControl(tolerance=1e-12, largest=0.1)
    return lv.simulate(oscillator(), [1.0], [0.0], scheme="taylor", t_end=40.0, control=control, **options)


@functools.cache
def van_der_pol() -> lv.FirstOrder:
    return lv.FirstOrder("x y", rhs=lambda x: [x[1], 50 * (1 - x[0] ** 2) * x[1] - x[0]])


def radau(**options: Any) -> lv.Result:
    control = lv.StepControl(tolerance=1e-7)
    return lv.simulate(van_der_pol(), x0=[2.0, 0.0], scheme="radau", t_end=200.0, control=control, **options)


@functools.cache
def steered() -> lv.Multibody:
    """Return a mechanism with a controller that has a state, and a joint stop with restitution."""
    mb = lv.Multibody(planar=True)
    hinge = mb.revolute("hinge", mb.ground, mb.rod("arm", a=[0, 0], b=[1, 0], mass=1.0), at=[0, 0])

    def law(t: float, seen: np.ndarray, state: np.ndarray) -> tuple[list[float], list[float]]:
        return [1.0 - 2.0 * seen[0] - state[0]], [state[0] + 0.1 * seen[0]]

    mb.sampled_controller("keeper", hinge, period=0.03, law=law, inputs="hinge.angle", state=[0.1])
    mb.limit("end", hinge, lower=-0.2, upper=0.2, stiffness=1e4, restitution=0.7)
    return mb


def steering(**options: Any) -> lv.Result:
    return steered().simulate(t_end=2.005, h=0.01, **options)


def contact(**options: Any) -> lv.Result:
    return lv.simulate(problem("bouncing-ball"), t_end=0.4, **options)


def assembled(**options: Any) -> lv.Result:
    return lv.simulate(problem("double-four-bar"), h=1e-3, t_end=0.1, tier="assembled", **options)


#: Runs, with a flag for events, and the model to resume with; None for built-in problems.
PACES = {
    equal: (True, oscillator),
    controlled: (True, oscillator),
    fictive: (True, lambda: None),
    linkage: (False, lambda: None),
    reference: (True, oscillator),
    taylor: (True, oscillator),
    radau: (False, van_der_pol),
    steering: (False, lambda: steered().system),
    contact: (False, lambda: None),
    assembled: (False, lambda: None),
}


@functools.cache
def undisturbed(pace: Any, every: int) -> lv.Result:
    """Return the undisturbed run, in memory."""
    return pace(every=every, events=EVENTS if PACES[pace][0] else ())


def start_or_resume(
    pace: Any, path: Path, chunk: int, every: int, compress: bool, events: bool, sync: bool
) -> lv.Result:
    """Start a run, or resume it if its file exists; global settings of the process are changed."""
    if not sync:  # the machine does not fail here, and waiting for its disk takes most of the time
        os.fsync = lambda descriptor: None  # type: ignore[assignment]
    recorder.COMMIT_INTERVAL, recorder.MAX_IO_SHARE, recorder.FLUSH_BYTES = 0.0, math.inf, 1
    startup._CHUNK_STEPS = chunk
    watched = EVENTS if events else ()
    if path.exists():
        return lv.resume(path, system=PACES[pace][1](), events=watched)
    return pace(out=path, every=every, compress=compress, events=watched)


def in_a_child(job: Any, kill_after: float | None) -> int:
    """Run a job in a child process, kill it after some seconds, and return its exit code."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            job()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    if kill_after is not None:
        time.sleep(kill_after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def differences(file: lv.Result, whole: lv.Result) -> list[str]:
    """Return the quantities in which a file differs from the first rows of a run; from all, if it is complete."""
    rows = len(file)
    differing = [
        name
        for name in whole.stored
        if getattr(file, name).tobytes() != np.ascontiguousarray(getattr(whole, name)[:rows]).tobytes()
    ]
    if file.status == "complete":
        pairs = dict(
            rows=(rows, len(whole)),
            summary=(file.summary, whole.summary),
            events=(file.events, whole.events),
            message=(file.message, whole.message),
            iterations=(file.statistics.newton_iterations, whole.statistics.newton_iterations),
            steps=(file.statistics.steps, whole.statistics.steps),
        )
        differing += [name for name, (value, other) in pairs.items() if value != other]
    return differing


def run(seed: int, first: int, count: int) -> Findings:
    """Kill runs `count` times."""
    findings, chance = Findings(), random.Random(f"kills {seed} {first}")
    kills = files = 0
    with tempfile.TemporaryDirectory() as folder:
        while kills < count:
            pace = list(PACES)[files % len(PACES)]
            every, compress = chance.choice((1, 7)), chance.random() < 0.4
            how = dict(chunk=chance.choice((5, 23, 97)), every=every, compress=compress, events=PACES[pace][0])
            how["sync"] = chance.random() < 0.2
            job = functools.partial(start_or_resume, pace, **how)
            whole, path = undisturbed(pace, every), Path(folder) / f"{files}.h5"
            files += 1
            start = time.monotonic()
            if in_a_child(functools.partial(job, Path(folder) / "whole.h5"), None) != DONE:
                findings.fault(files, f"{pace.__name__} {how} does not run")
                break
            (Path(folder) / "whole.h5").unlink()
            length, resumed = time.monotonic() - start, 0
            for _ in range(60):
                file_exists = path.exists()
                code = in_a_child(functools.partial(job, path), chance.uniform(0.0, 1.2 * length))
                kills += code == KILLED
                resumed += file_exists and code == KILLED
                if code not in (KILLED, DONE):
                    findings.fault(files, f"{pace.__name__} {how}: exit code {code}")
                if path.exists():
                    file = lv.load(path)
                    if wrong := differences(file, whole):
                        findings.fault(files, f"{pace.__name__} {how}, {file.status}: {', '.join(wrong)} differ")
                    if file.status == "complete":
                        break
                if code == DONE or kills >= count:
                    break
            findings.counts["kills while resuming"] += resumed
            if not path.exists() or lv.load(path).status != "complete":
                if in_a_child(functools.partial(job, path), None) != DONE:
                    findings.fault(files, f"{pace.__name__} {how} cannot be resumed")
                elif wrong := differences(lv.load(path), whole):
                    findings.fault(files, f"{pace.__name__} {how}: {', '.join(wrong)} differ at the end")
            findings.counts[f"files with {pace.__name__} steps"] += 1
            path.unlink(missing_ok=True)
    findings.counts["kills"] = kills
    return findings
