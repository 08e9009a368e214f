"""Animations and lab: time to write and open a page of many bodies, and time of the lab to its first frame."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.program import ProgramError, run_module
from benchmarks.report import BenchReport, ComparisonRow, Goal

_BODIES, _FRAMES = 200, 10_001
_TIMES = 3
#: Problem whose compiled kernels are on disk from a previous lab.
_LAB_PROBLEM = "double-four-bar"
#: Browser arguments with software rendering, for machines without graphics card.
_ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--headless=new"]


class Animations:
    """Runs once, in separate processes; the browser may use all cores."""

    name = "films"

    def __init__(self) -> None:
        self._write_time, self._open_time, self._lab, self._mb = Minimum(), Minimum(), Minimum(), 0.0
        self._skipped: dict[str, str] = {}

    def run_round(self, first: bool, log: Log) -> None:
        if not first:
            return
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "chain.html"
            result = run_module(__name__, json.dumps({"part": "write", "page": str(page)}))
            self._write_time.add(result["s"])
            self._mb = result["mb"]
            for part, best in (("open", self._open_time), ("lab", self._lab)):
                if missing():
                    self._skipped["chromium"] = missing()
                    return
                try:
                    best.add(run_module(__name__, json.dumps({"part": part, "page": str(page)}))["s"])
                except ProgramError as error:
                    self._skipped["chromium"] = f"failed ({error})"

    def add_to_report(self, report: BenchReport) -> None:
        case = f"a page of {_BODIES} bodies and {_FRAMES} frames"
        report.lines.append(ComparisonRow(f"{case}: size", self._mb, "MB"))
        report.lines.append(ComparisonRow(f"{case}: written", self._write_time.value, "s", Goal("<", 2)))
        if math.isfinite(self._open_time.value):
            report.lines.append(ComparisonRow(f"{case}: opened", self._open_time.value, "s", Goal("<", 2)))
        if math.isfinite(self._lab.value):
            case = f"the lab, {_LAB_PROBLEM}: from pressing run to the first frame"
            report.lines.append(ComparisonRow(case, self._lab.value, "s", Goal("<", 1)))
        report.skipped.update(self._skipped)


def missing() -> str:
    """Return the missing requirement for opening pages, or an empty string."""
    if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("starlette") is None:
        return "playwright or starlette is not installed"
    return "" if _chromium() else "not installed"


def _chromium() -> str | None:
    return os.environ.get("LIVENS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def main(request: dict[str, Any]) -> dict[str, float]:
    return {"write": _write, "open": _open, "lab": _lab_first_frame}[request["part"]](Path(request["page"]))


def _write(page: Path) -> dict[str, float]:
    """Time the first animation of a process, including imports."""
    from livens import problems
    from livens.run.simulate import simulate

    run = simulate(problems.load("chain", N=_BODIES), h=1e-3, t_end=(_FRAMES - 1) * 1e-3, progress=False)
    start_time = time.perf_counter()
    run.animate(page, frames=_FRAMES, play=False)
    took = time.perf_counter() - start_time
    if len(run.t) != _FRAMES:
        raise RuntimeError("the timed animation has a wrong number of frames")
    return {"s": took, "mb": page.stat().st_size / 1e6}


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=_ARGUMENTS)
        yield browser
        browser.close()


def _all_cores() -> None:
    """Allow all cores of the machine, independent of the parent process."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def _open(page: Path) -> dict[str, float]:
    """Time the opening of a page with all frames, the minimum over several pages of one browser."""
    _all_cores()
    best = Minimum()
    with _browser() as browser:
        for _ in range(_TIMES):
            sheet = browser.new_page(viewport={"width": 760, "height": 560})
            start_time = time.perf_counter()
            sheet.goto(page.absolute().as_uri())
            sheet.wait_for_selector('html[data-ready="true"]', state="attached")
            best.add(time.perf_counter() - start_time)
            if sheet.evaluate("livens.times().length") != _FRAMES:
                raise RuntimeError("the opened page has a wrong number of frames")
            sheet.close()
    return {"s": best.value}


def _lab_first_frame(page: Path) -> dict[str, float]:
    """Time from pressing the button to the first frame, by the clock of the page."""
    _all_cores()
    best = Minimum()
    with _browser() as browser:
        for number in range(1 + _TIMES):  # the first one includes compilation
            took = _time_to_first_frame(browser)
            if number:
                best.add(took)
    return {"s": best.value}


def _time_to_first_frame(browser: Any) -> float:
    from livens.lab.server import Lab

    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder))
        thread = threading.Thread(target=lab.serve, daemon=True)
        thread.start()
        sheet = browser.new_context(viewport={"width": 900, "height": 640}).new_page()
        sheet.goto(f"{lab.link}&problem={_LAB_PROBLEM}")
        sheet.wait_for_selector(f'html[data-lab="ready"][data-problem="{_LAB_PROBLEM}"]', state="attached")
        while not lab.jobs.ready:  # wait for the imports of the worker process
            time.sleep(0.02)
        sheet.click("#run")
        sheet.wait_for_selector('html[data-done="true"]', state="attached")
        took = float(sheet.get_attribute("html", "data-first"))
        sheet.context.close()
        lab.stop()
        thread.join()
    return took / 1e3


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
