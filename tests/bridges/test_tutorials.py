"""Pages whose blocks need an extra: they run, and print what the page shows, where the extra is installed."""

import re
from pathlib import Path

import pytest

import livens  # noqa: F401

DOCS = Path(__file__).parents[2] / "docs"
#: Modules of the extras of pages.
MODULES = {"gym": ("gymnasium",), "fmu": ("ziglang", "fmpy")}
BLOCK = re.compile(r"<!-- not run: needs the extra (\w+) -->\n```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_that_need_an_extra_run_where_it_is_installed(page, tmp_path, monkeypatch, capsys):
    text = page.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    for module in MODULES[blocks[0][0]]:
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    shown, namespace = {line.strip() for line in text.splitlines()}, {}
    for _, code in blocks:
        exec(compile(code, page.name, "exec"), namespace)
        assert [line for line in capsys.readouterr().out.splitlines() if line.strip() not in shown] == []
