"""The way of the data is one direction: nothing imports from a room to its right, at the top of a module or inside a
function. Imports for type checkers alone are free; the table of public names in ``livens/__init__.py`` knows all rooms.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import livens

SOURCE = Path(livens.__file__).parent
#: Rooms from left to right. `results` stands before `run`: a run writes its results, and results know nothing of runs.
ROOMS = (
    "errors math rotations expressions models multibody schemes engine results run problems scenario analysis plot "
    "viewer lab reproduce bench cli"
).split()
#: What every room may use, as the language itself.
WORDS = ("errors", "math", "rotations")


def modules():
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def room(module):
    return module.split(".")[1] if "." in module else ""


def name_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name):
    path = SOURCE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir() or name.removeprefix("livens.") in livens.PUBLIC_PATHS


def typing_only(tree):
    """Nodes below ``if TYPE_CHECKING:``."""
    guarded = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    return {id(inner) for node in guarded for statement in node.body for inner in ast.walk(statement)}


def imports(text):
    """(module imported, line, lazily) of every import of this package that is carried out when code runs."""
    tree = ast.parse(text)
    free = typing_only(tree)
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if id(node) in free:
            continue
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            inside = [name for name in below if is_module(name)]
            found = inside if len(inside) == len(below) else [*inside, node.module]
        else:
            continue
        for name in found:
            if name.startswith("livens."):
                yield name, node.lineno, id(node) not in top


def test_every_folder_and_module_is_a_room():
    found = {room(name_of(path)) for path in modules()}
    assert found <= set(ROOMS), f"no room in the order: {sorted(found - set(ROOMS))}"
    assert len(list(SOURCE.glob("*.py"))) <= 4, "the top holds public words and nothing else"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_direction_of_imports(path):
    here = ROOMS.index(room(name_of(path)))
    for name, line, lazy in imports(path.read_text()):
        there = livens.PUBLIC_PATHS.get(room(name), room(name)).split(".")[0]
        if there in WORDS and here >= len(WORDS):
            continue
        kind = "a lazy import" if lazy else "an import"
        assert there in ROOMS, f"line {line}: {name} is in no room"
        assert ROOMS.index(there) <= here, f"line {line}: {kind} of {name}, which is to the right"


def test_lazy_imports_and_those_for_types_are_told_apart():
    text = (
        "from typing import TYPE_CHECKING\nimport livens.models\nif TYPE_CHECKING:\n    from livens.cli import app\n"
        "def f():\n    from livens import plot\n    import livens.run.plan\n"
    )
    assert sorted(imports(text)) == [
        ("livens.models", 2, False), ("livens.plot", 6, True), ("livens.run.plan", 7, True),
    ]  # fmt: skip


def test_no_cycle_at_module_level():
    """Modules that wait for one another at import would depend on who is imported first."""
    names = {name_of(path): path for path in modules()}
    graph = {}
    for name, path in names.items():
        found = [target for target, _, lazy in imports(path.read_text()) if not lazy]
        graph[name] = {target for target in found if target in names and target != name}
    done, open_ = set(), []

    def visit(name):
        if name in done:
            return
        assert name not in open_, f"a cycle of imports: {' -> '.join([*open_[open_.index(name) :], name])}"
        open_.append(name)
        for target in sorted(graph[name]):
            visit(target)
        done.add(open_.pop())

    for name in sorted(graph):
        visit(name)


def test_a_public_path_leaves_functions_of_the_same_name_alone():
    code = (
        "import livens, livens.study.sweeps, livens.tableaus.murua\n"
        "from livens.study.sweeps import Sweep\n"
        "from livens.analysis.study.sweeps import Sweep as same\n"
        "assert Sweep is same and callable(livens.study.sweep) and callable(livens.tableaus.murua)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
