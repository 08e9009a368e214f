"""Scripts of the folder examples: every script runs, and the folder describes them all."""

import importlib.util
import json
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


def test_the_notebooks_are_the_tutorials_of_the_site():
    """``python docs/_ext/notebooks.py`` writes them; the cells are run by the tests of the pages."""
    spec = importlib.util.spec_from_file_location("notebooks", EXAMPLES.parent / "docs" / "_ext" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = EXAMPLES / "notebooks"
    written = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.ipynb")}
    assert len(written) >= 10
    assert written == {page.stem: module.notebook(page) for page in module.tutorials()}
    for text in written.values():
        cells = json.loads(text)["cells"]
        assert {cell["cell_type"] for cell in cells} == {"markdown", "code"}
