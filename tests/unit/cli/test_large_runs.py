"""Large systems from the command line, on a terminal: what is going on is said, and there is a report."""

import re

import pytest

from terminal import on_a_terminal


def plain(written):
    """Without what moves the cursor and colours letters."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)


def test_what_is_done_before_the_first_step_is_said(tmp_path):
    """With an empty cache: equations are derived and kernels compiled; the report says what was conserved."""
    asked = ("run", "n-four-bar", "--set", "N=40", "--t-end", "0.02", "--out", "row.h5")
    code, written = on_a_terminal(*asked, cwd=tmp_path, patience=0.0, env={"LIVENS_CACHE_DIR": str(tmp_path / "cache")})
    seen = plain(written)
    assert code == 0, seen
    assert "deriving 971 equations" in seen and re.search(r"compiling \d+ kernels", seen)
    assert "Conserved quantities" in seen and "conserved to round-off as guaranteed" in seen
    assert (tmp_path / "row.h5").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "N"), [("n-four-bar", 5000), ("chain", 10_000)])
def test_ten_thousand_bodies_from_the_command_line(tmp_path, name, N):
    """With a progress bar that counts steps."""
    asked = ("run", name, "--set", f"N={N}", "--t-end", "0.3", "--every", "100", "--out", "large.h5")
    code, written = on_a_terminal(*asked, cwd=tmp_path, patience=0.5)
    seen = plain(written)
    assert code == 0, seen
    assert re.search(r"(checking|deriving) \d+ (constraints|equations)", seen)
    assert re.search(r"\d+/300 steps", seen)
    assert "Conserved quantities" in seen
