"""The examples of the documents run as they stand."""

import re
from pathlib import Path

import pytest

DOCUMENTS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", ["ensembles.md", "gradients.md", "large.md", "taylor.md"])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", (DOCUMENTS / name).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    if name == "ensembles.md":
        assert names["many"].q.shape == (40, 31, 2) and Path("pendulums.h5").exists()
    elif name == "taylor.md":
        assert len(names["run"].events) == 6
    elif name == "large.md":
        assert len(names["net"].element_groups) == 3 and names["few"].stored == ("t", "q") and Path("chain.h5").exists()
    else:
        assert names["many"].values.shape == (3,) and names["many"].values.argmin() == 1  # the data belong to g = 9.5
