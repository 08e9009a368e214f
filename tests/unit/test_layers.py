"""Dependencies have one direction: no module imports from a layer to its right, at module level or inside a function.
Imports for type checkers alone are exempt, and so is the table of public names in ``livens/__init__.py``.
"""

import ast
import importlib
import re
from pathlib import Path

import pytest

import livens

SOURCE = Path(livens.__file__).parent
#: Layers from left to right. `results` comes before `run`: a run writes its results, and results do not depend on runs.
LAYERS = (
    "errors late_attributes lookup_tables math types rotations validation progress expressions scene models multibody "
    "schemes engine results run problems scenario analysis plot viewer transcription lab reproduce cli"
).split()
#: Public modules that re-export the names of a module with another path.
REEXPORTS = "bodies bridges contacts gym observe port_hamiltonian scaling shapes study symmetry tableaus".split()
#: Layers that every other layer may use.
BASE = ("errors", "late_attributes", "lookup_tables", "math", "types", "rotations")


def modules():
    return sorted(
        path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem not in ("__init__", *REEXPORTS)
    )


def layer(module):
    return module.split(".")[1] if "." in module else ""


def name_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def home(name):
    """Module whose names a public module re-exports."""
    found = re.search(r"^from (livens[.\w]+) import", (SOURCE / f"{layer(name)}.py").read_text(), re.M)
    return found.group(1)


def is_module(name):
    path = SOURCE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


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


def test_every_package_and_module_has_a_layer():
    found = {layer(name_of(path)) for path in modules()}
    assert found <= set(LAYERS), f"no layer in the order: {sorted(found - set(LAYERS))}"
    top = {path.stem for path in SOURCE.glob("*.py")}
    files = (name for name in BASE if not (SOURCE / name).is_dir())
    assert top == {"__init__", *files, "validation", "progress", *REEXPORTS}, (
        "the top level holds the base layers and nothing else"
    )


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_direction_of_imports(path):
    here = LAYERS.index(layer(name_of(path)))
    for name, line, lazy in imports(path.read_text()):
        there = layer(home(name)) if layer(name) in REEXPORTS else layer(name)
        if there in BASE and here >= len(BASE):
            continue
        kind = "a lazy import" if lazy else "an import"
        assert there in LAYERS, f"line {line}: {name} is in no layer"
        assert LAYERS.index(there) <= here, f"line {line}: {kind} of {name}, which is to the right"


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


@pytest.mark.parametrize("name", REEXPORTS)
def test_public_modules_have_the_names_of_their_homes(name):
    public, inner = importlib.import_module(f"livens.{name}"), importlib.import_module(home(f"livens.{name}"))
    assert getattr(livens, name) is public
    assert getattr(public, "__all__", None) == getattr(inner, "__all__", None)
    if name == "gym":  # names of an optional dependency, imported on first use
        pytest.importorskip("gymnasium")
    for each in getattr(inner, "__all__", ["reduce", "observe"]):
        assert getattr(public, each) is getattr(inner, each)
