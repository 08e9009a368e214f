"""The documents of mechanisms: every block of Python runs, what is said to be printed is, and lines are counted."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", ["mechanism-tutorial", "mechanism-joints", "mechanism-forces", "coming-from"])
def test_the_examples_run(name, capsys):
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, f"docs/{name}.md", "exec"), names)
    for line in capsys.readouterr().out.splitlines():
        assert f"    {line}" in text


def test_lines_are_counted_right():
    """As the table of the tutorial says: without imports, and without what only looks at the mechanism."""
    text = (DOCS / "mechanism-tutorial.md").read_text(encoding="utf-8")
    counted = [int(number) for number in re.findall(r"\| (\d+) \|", text)]
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[-3:]
    first = re.findall(r"```python\n(.*?)```", (DOCS / "multibody.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    assert counted == [lines(block) for block in (first, *blocks)]


def lines(block):
    code = [line for line in block.splitlines() if line.strip()]
    return sum(not line.startswith(("import", "from", "assert", "print")) for line in code)
