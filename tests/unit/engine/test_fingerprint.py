"""The key of the machine-code cache depends on every source that determines generated code."""

import shutil
from pathlib import Path

import pytest

import livens
from livens.engine.codegen.fingerprint import codegen_fingerprint, hash_sources

PACKAGE = Path(livens.__file__).parent


@pytest.mark.parametrize(
    ("file", "constant"),
    [
        ("engine/newton/workspace_layout.py", ""),
        ("engine/newton/predictors.py", "MAX_CURVATURE"),
        ("engine/steppers/fixed_point_rk.py", ""),
        ("engine/assembled/indexed_emitter.py", ""),
        ("engine/taylor/recurrences.py", ""),
        ("expressions/graph/interpreter.py", ""),
        ("schemes/discretization/assembly_plan.py", ""),
    ],
)
def test_a_changed_source_changes_the_fingerprint(tmp_path, file, constant):
    for folder in ("engine", "expressions", "schemes"):
        shutil.copytree(PACKAGE / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    assert hash_sources(tmp_path) == codegen_fingerprint()
    path = tmp_path / file
    text = path.read_text()
    assert constant in text
    path.write_text(text.replace(constant, f"{constant}_CHANGED", 1) if constant else text + "\nOFFSET = 1\n")
    assert hash_sources(tmp_path) != codegen_fingerprint()
