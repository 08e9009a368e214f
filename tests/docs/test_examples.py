"""Scripts of the folder examples: every script runs, and the folder describes them all."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_runs_and_prints_something(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_readme_of_the_folder_lists_all_scripts():
    assert len(SCRIPTS) >= 20
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [script.name for script in SCRIPTS if f"`{script.name}`" not in text] == []
