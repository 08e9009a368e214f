"""A real browser for tests of pages; where there is none, they are skipped and the last line of the output says so."""

import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = os.environ.get("LIVENS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
#: Software rendering, as there is no screen.
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--headless=new"]
#: Pages wait for a flag; how long that may take on a busy machine is no claim.
PATIENCE = 600_000
MISSING = "there is no chromium to show the page in"
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)


@contextmanager
def browser():
    """Chromium, for as long as the context lasts."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=PATIENCE)
        yield found
        found.close()


def watched(page):
    """A page that notes what complains on its console."""
    page.set_default_timeout(PATIENCE)
    page.set_default_navigation_timeout(PATIENCE)
    page.troubles = []
    page.on("console", lambda m: page.troubles.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    return page


def wait(page, **flags):
    """Until the page says so about itself, in attributes of its document."""
    for name, value in flags.items():
        page.wait_for_selector(f'html[data-{name}="{value}"]', state="attached")
