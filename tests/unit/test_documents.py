"""The README's Python runs as it is shown, and documents name no file or module that is not there."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    """Every block of Python, one after the other."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 2
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["state"].t == pytest.approx(0.592, abs=2e-3) and names["state"].q[1] == pytest.approx(-1.0, abs=1e-4)
    assert capsys.readouterr().out.startswith("[-0.27513391 -0.96140591]")


def test_the_first_screen_of_the_readme_moves():
    from PIL import Image

    first = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:20])
    (film,) = re.findall(r"!\[[^\]]+\]\((\S+\.gif)\)", first)
    with Image.open(ROOT / film) as opened:
        assert opened.n_frames > 20


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_documents_name_is_there(document):
    text = document.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:src|tests|docs)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"\]\(([\w./-]+\.md)\)", text):
        assert (document.parent / target).exists(), target
    for name in re.findall(r"`(livens(?:\.\w+)+)`", text):
        found(name)
    for name in re.findall(r"\blv((?:\.[A-Za-z]\w*)+)", text):
        found(f"livens{name}")


def found(name):
    """A module, or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part)
        return value
    raise AssertionError(name)
