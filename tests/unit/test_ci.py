"""The script of continuous integration: it installs a browser if possible and reports its absence."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "there, user, called",
    [
        (["chromium"], 0, ["make test"]),
        (["apt-get"], 0, ["apt-get update -qq", "apt-get install", "make test"]),
        (["apt-get"], 1000, ["make test"]),
        ([], 0, ["make test"]),
    ],
)
def test_a_browser_is_fetched_if_it_is_missing_and_may_be(tmp_path, there, user, called):
    """With programs that only note that they were called, in place of those that do something."""
    notes = tmp_path / "notes"
    for name in ("make", "id", *there):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{f'echo {user}' if name == 'id' else f'echo {name} $@ >> {notes}'}\n")
        program.chmod(0o755)
    for name in ("bash", "dirname", "env"):
        (tmp_path / name).symlink_to(shutil.which(name))
    done = subprocess.run([ROOT / ".ci" / "run"], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = notes.read_text().splitlines()
    assert len(lines) == len(called)
    assert all(line.startswith(words) for line, words in zip(lines, called, strict=True))


def test_without_a_browser_the_last_line_says_so(tmp_path):
    settings = {name: value for name, value in os.environ.items() if name != "LIVENS_CHROMIUM"} | {
        "PATH": str(tmp_path)
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "dark_and_light"]
    tests = ["tests/unit/viewer/test_page.py"]
    done = subprocess.run([*command, *tests], cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().splitlines()[-1] == "There is no browser: 1 tests of pages were skipped."
