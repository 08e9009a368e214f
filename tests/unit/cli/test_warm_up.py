"""Command that compiles the model-independent time loops."""

from __future__ import annotations

from typer.testing import CliRunner

from livens.cli import app
from livens.engine.lowering.function import is_compiled
from livens.engine.trees.output import advance_tree
from livens.engine.warm_up import warm_up


def test_all_loops_are_compiled():
    names: list[str] = []
    assert warm_up(names.append) == len(names) >= 8
    assert "trees.output.advance_tree" in names and is_compiled(advance_tree)


def test_the_command_reports_what_it_compiles():
    result = CliRunner().invoke(app, ["warm-up"])
    assert result.exit_code == 0 and f"{warm_up()} time loops are compiled" in result.output
    assert not CliRunner().invoke(app, ["warm-up", "--quiet"]).output
