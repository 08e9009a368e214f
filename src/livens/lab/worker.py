"""Worker process of the lab: executes run requests and sends animation frames, reports and errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from livens.errors import IntegrationError, Interrupted, LivensError
from livens.lab.request import RESULTS, RunRequest, resolve_in_folder

#: Seconds between updates of the animation during a run, and largest fraction of the time spent on them.
_MIN_FRAME_INTERVAL, _MAX_FRAME_TIME_RATIO = 0.25, 0.25
#: Number of frames of an update.
_FRAMES = 300

Send = Callable[..., None]


def run_worker(pipe: Connection, folder: str, timeout: float) -> None:
    """Execute jobs until the pipe is closed. A job is a run request with its output folder."""
    try:
        warm_up()
        pipe.send(("ready", None))
        while True:
            job = pipe.recv()
            if job == "stop":  # the job has finished already
                continue
            number, request, output_folder = job

            def send(message_type: str, content: object = None) -> None:
                pipe.send((message_type, (number, content)))

            try:
                Worker(pipe, send, Path(folder), timeout).execute(RunRequest(**request), Path(output_folder))
            except LivensError as error:
                send("error", str(error))
            except MemoryError:
                send("error", "not enough memory")
            except Exception as error:  # the worker survives any failure of a job
                send("error", f"{type(error).__name__}: {error}")
            send("done")
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return


def warm_up() -> None:
    """Import and load the modules that every run needs, by a short run."""
    from livens import problems, schemes
    from livens.run.simulate import simulate

    problems.all()
    schemes.all()
    run = simulate(problems.load("simple-pendulum"), h=0.01, t_end=0.1)
    Worker._frame(run)
    run.report()


class Worker:
    """Execution of one job."""

    def __init__(self, pipe: Connection, send: Send, folder: Path, timeout: float) -> None:
        self._pipe, self._send, self._folder, self._timeout = pipe, send, folder, timeout
        self._finished_frames: list[dict[str, Any]] = []  # animation data of the finished runs of the job
        self._stopped = False

    def execute(self, request: RunRequest, output_folder: Path) -> None:
        """Execute all runs of a request: show, save and report them."""
        results = []
        if request.file.endswith(RESULTS):
            import livens as lv

            results.append(lv.load(resolve_in_folder(self._folder, request.file)))
            self._finished_frames.append(self._frame(results[-1]))
        else:
            for plan in request.plans(self._folder):
                if not self._stopped:
                    results.append(self._run(plan))
                    self._finished_frames.append(self._frame(results[-1]))
        self._send("animation", json.dumps({"runs": self._finished_frames, "running": False}))
        for i, result in enumerate(results):
            if not request.file.endswith(RESULTS):
                result.save(output_folder / f"{result.info.problem or 'run'}{'-other' if i else ''}.h5", force=True)
        self._send("files", sorted(path.name for path in output_folder.iterdir()))
        for result in results:
            report = result.report(accuracy=result.status == "complete" and not self._stop_requested())
            self._send("report", report._repr_html_())

    def _run(self, plan: Any) -> Any:
        from livens.run.simulate import execute

        t_start = time.monotonic()
        next_frame_time = t_start

        def on_progress(partial_result: Callable[[], Any]) -> bool:
            nonlocal next_frame_time
            now = time.monotonic()
            if now - t_start > self._timeout or self._stop_requested():
                self._stopped = True
                return False
            if now >= next_frame_time:
                payload = {
                    "runs": [*self._finished_frames, self._frame(partial_result(), _FRAMES)],
                    "running": True,
                    "t_end": plan.t_end,
                }
                self._send("animation", json.dumps(payload))
                next_frame_time = time.monotonic() + max(
                    _MIN_FRAME_INTERVAL, (time.monotonic() - now) / _MAX_FRAME_TIME_RATIO
                )
            return True

        try:
            return execute(plan, t_start=time.perf_counter(), progress=False, callback=on_progress)
        except Interrupted as stop:
            if stop.result is None:
                raise
            if time.monotonic() - t_start > self._timeout:
                message = (
                    f"stopped at t = {stop.result.t[-1]:.6g}: time limit of {self._timeout:g} s of the lab reached"
                )
                self._send("error", message)
            return stop.result
        except IntegrationError as error:
            if error.result is None or len(error.result.t) < 2:
                raise
            self._send("error", str(error))
            return error.result

    def _stop_requested(self) -> bool:
        while self._pipe.poll():
            self._stopped = self._pipe.recv() == "stop" or self._stopped
        return self._stopped

    @staticmethod
    def _frame(result: Any, frames: int | None = None) -> dict[str, object]:
        from livens.viewer.payload import run_payload, scene_or_empty

        return run_payload(result, frames, scene=scene_or_empty(result), include_optional=frames is None)
