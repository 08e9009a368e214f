"""Worker process of the lab: executes run requests and sends animation frames, reports and errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from livens.errors import IntegrationError, Interrupted, LivensError
from livens.lab.asked import RESULTS, Asked, inside

#: Seconds between updates of the animation during a run, and largest fraction of the time spent on them.
_OFTEN, _SHARE = 0.25, 0.25
#: Number of frames of an update.
_FRAMES = 300

Tell = Callable[..., None]


def work(pipe: Connection, folder: str, seconds: float) -> None:
    """Execute jobs until the pipe is closed. A job is a run request with its output folder."""
    try:
        warm_up()
        pipe.send(("ready", None))
        while True:
            job = pipe.recv()
            if job == "stop":  # the job has finished already
                continue
            number, asked, kept = job

            def tell(what: str, content: Any = None) -> None:
                pipe.send((what, (number, content)))

            try:
                Worker(pipe, tell, Path(folder), seconds).do(Asked(**asked), Path(kept))
            except LivensError as error:
                tell("trouble", str(error))
            except MemoryError:
                tell("trouble", "not enough memory")
            except Exception as error:  # the worker survives any failure of a job
                tell("trouble", f"{type(error).__name__}: {error}")
            tell("over")
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return


def warm_up() -> None:
    """Import and load the modules that every run needs, by a short run."""
    from livens import problems, schemes
    from livens.run.simulate import simulate

    problems.all()
    schemes.all()
    run = simulate(problems.load("simple-pendulum"), h=0.01, t_end=0.1)
    Worker._picture(run)
    run.report()


class Worker:
    """Execution of one job."""

    def __init__(self, pipe: Connection, tell: Tell, folder: Path, seconds: float) -> None:
        self._pipe, self._tell, self._folder, self._seconds = pipe, tell, folder, seconds
        self._done: list[dict[str, Any]] = []  # animation data of the finished runs of the job
        self._stopped = False

    def do(self, asked: Asked, kept: Path) -> None:
        """Execute all runs of a request: show, save and report them."""
        results = []
        if asked.file.endswith(RESULTS):
            import livens as lv

            results.append(lv.load(inside(self._folder, asked.file)))
            self._done.append(self._picture(results[-1]))
        else:
            for plan in asked.plans(self._folder):
                if not self._stopped:
                    results.append(self._run(plan))
                    self._done.append(self._picture(results[-1]))
        self._tell("picture", json.dumps({"runs": self._done, "waiting": False}))
        for i, result in enumerate(results):
            if not asked.file.endswith(RESULTS):
                result.save(kept / f"{result.facts.problem or 'run'}{'-other' if i else ''}.h5", force=True)
        self._tell("kept", sorted(path.name for path in kept.iterdir()))
        for result in results:
            report = result.report(accuracy=result.status == "complete" and not self._asked_to_stop())
            self._tell("report", report._repr_html_())

    def _run(self, plan: Any) -> Any:
        from livens.run.simulate import execute

        begun = time.monotonic()
        following = begun

        def look(so_far: Callable[[], Any]) -> bool:
            nonlocal following
            now = time.monotonic()
            if now - begun > self._seconds or self._asked_to_stop():
                self._stopped = True
                return False
            if now >= following:
                shown = {"runs": [*self._done, self._picture(so_far(), _FRAMES)], "waiting": True, "until": plan.t_end}
                self._tell("picture", json.dumps(shown))
                following = time.monotonic() + max(_OFTEN, (time.monotonic() - now) / _SHARE)
            return True

        try:
            return execute(plan, begun=time.perf_counter(), progress=False, onlooker=look)
        except Interrupted as stop:
            if stop.result is None:
                raise
            if time.monotonic() - begun > self._seconds:
                words = f"stopped at t = {stop.result.t[-1]:.6g}: time limit of {self._seconds:g} s of the lab reached"
                self._tell("trouble", words)
            return stop.result
        except IntegrationError as error:
            if error.result is None or len(error.result.t) < 2:
                raise
            self._tell("trouble", str(error))
            return error.result

    def _asked_to_stop(self) -> bool:
        while self._pipe.poll():
            self._stopped = self._pipe.recv() == "stop" or self._stopped
        return self._stopped

    @staticmethod
    def _picture(result: Any, frames: int | None = None) -> dict[str, Any]:
        from livens.viewer.data import run_data, scene_or_nothing

        return run_data(result, frames, scene=scene_or_nothing(result), offers=frames is None)
