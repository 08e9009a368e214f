"""Screenshots of the viewer and of the lab in a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from registry import PICTURES

import livens as lv


def launch(driver: Any) -> Any:
    """Return the browser."""
    program = os.environ.get("LIVENS_CHROMIUM", "/usr/bin/chromium")
    return driver.chromium.launch(executable_path=program, args=["--no-sandbox"])


def viewer(name: str, time: float, theme: str = "light", **options: Any) -> None:
    """Register a screenshot of the animation page of a built-in problem."""

    def write(path: Path) -> None:
        from playwright.sync_api import sync_playwright

        problem, t_end, row_curves = options["problem"], options["t_end"], options.get("curves", ())
        run = lv.simulate(lv.problems.load(problem), t_end=t_end)
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
            page_file = run.animate(Path(folder) / "run.html", play=False, theme=theme, curves=row_curves)
            browser = launch(driver)
            page = browser.new_page(viewport={"width": 960, "height": 620})
            page.goto(page_file.as_uri())
            page.wait_for_timeout(1500)
            page.evaluate(
                "part => { const s = document.getElementById('scrub');"
                " s.value = +s.min + part * (s.max - s.min); s.dispatchEvent(new Event('input')); }",
                time / t_end,
            )
            page.wait_for_timeout(800)
            page.screenshot(path=path)
            browser.close()

    PICTURES[name] = write


viewer("viewer-four-bar", 1.2, problem="double-four-bar", t_end=4.0)
viewer("viewer-dark", 1.0, "dark", problem="bricard", t_end=6.0)
viewer("import", 1.5, problem="six-axis-arm", t_end=3.0)


def lab(name: str, page_name: str = "", **choices: str) -> None:
    """Register a screenshot of a page of the lab, after something was chosen in its lists."""

    def write(path: Path) -> None:
        from playwright.sync_api import sync_playwright

        command = [str(Path(sys.executable).with_name("livens")), "lab", "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as driver:
            assert server.stdout is not None
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
            browser = launch(driver)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            page.wait_for_timeout(3000)
            for field, value in choices.items():
                page.select_option(f"#{field}", value)
                page.wait_for_timeout(1500)
            if page_name:
                page.goto(address.partition("?")[0].rstrip("/") + f"/{page_name}")
            page.wait_for_timeout(4000)
            page.screenshot(path=path)
            browser.close()
            server.terminate()

    PICTURES[name] = write


lab("lab", problem="nonlinear-pendulum", other="explicit-euler", layout="side")
lab("gallery", "gallery")
