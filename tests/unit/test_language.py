"""Names and prose of the source follow the rules of CONTRIBUTING.md; the glossary lists existing identifiers."""

import ast
import contextlib
import importlib
import inspect
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import livens
from livens.errors import MissingExtraError

SOURCE = Path(livens.__file__).parent
TESTS = Path(__file__).parents[1]
GLOSSARY = TESTS.parent / "docs" / "reference" / "glossary.md"
WORDS = tomllib.loads((TESTS / "language" / "words.toml").read_text())
EXCLUDED = set(WORDS["names"].split())
EXCEPTIONS = {(entry["file"], entry["name"]) for entry in WORDS["exceptions"]}


def sources():
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


def defined_names(tree):
    """Yield (name, line) of all definitions, parameters and assigned variables."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            text = ast.get_docstring(node)
            if text:
                yield text, getattr(node, "lineno", 1)


def test_names_are_not_everyday_words():
    wrong = [
        f"{file}:{line} {name}"
        for file, tree in sources().items()
        for name, line in defined_names(tree)
        if name.strip("_").lower() in EXCLUDED and (file, name) not in EXCEPTIONS
    ]
    assert not wrong, "\n".join(wrong)


def test_docstrings_begin_with_the_term():
    opening = re.compile(rf"({'|'.join(map(re.escape, WORDS['openings']))})\b")
    wrong = [
        f"{file}:{line} {text.splitlines()[0]}"
        for file, tree in sources().items()
        for text, line in docstrings(tree)
        if opening.match(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_docstrings_do_not_personify_code():
    phrase = re.compile(rf"\b({'|'.join(map(re.escape, WORDS['phrases']))})\b")
    wrong = [
        f"{file}:{line} {found.group()}"
        for file, tree in sources().items()
        for text, line in docstrings(tree)
        if (found := phrase.search(text))
    ]
    assert not wrong, "\n".join(wrong)


def test_exceptions_are_few_and_have_reasons():
    assert len(WORDS["exceptions"]) < 40
    assert all(entry["reason"].strip() for entry in WORDS["exceptions"])


def test_public_classes_have_different_names():
    """A public name stands for one class; the classes behind two public paths are the same object."""
    homes = defaultdict(set)
    for _, part in public_objects():
        if inspect.isclass(part):
            homes[part.__name__].add(f"{part.__module__}.{part.__qualname__}")
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def installed_members(label, module, names):
    """Yield (label, object) of the public names of a module whose optional dependencies are installed."""
    for name in names:
        with contextlib.suppress(MissingExtraError):
            yield f"{label}.{name}", getattr(module, name)


def public_objects():
    """Yield (label, object) of all public functions and classes, except those of extras that are not installed."""
    for name in livens.__all__:
        value = getattr(livens, name)
        inner = getattr(value, "__all__", ()) if inspect.ismodule(value) else None
        for label, part in [(name, value)] if inner is None else installed_members(name, value, inner):
            if inspect.isfunction(part) or (inspect.isclass(part) and part.__module__.startswith("livens")):
                yield label, part


def undocumented(label, function, texts):
    parameters = inspect.signature(function).parameters
    for name in parameters:
        described = any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)
        if name not in ("self", "cls", "result") and not described:
            yield f"{label}({name})"


def arguments_without_description(label, part):
    """Yield the arguments of a function, or of a class and its methods; an override inherits the text of its base."""
    if inspect.isfunction(part):
        yield from undocumented(label, inspect.unwrap(part), [inspect.getdoc(part) or ""])
        return
    if "__init__" in vars(part) or hasattr(part, "__dataclass_fields__"):
        yield from undocumented(label, part, [inspect.getdoc(part) or "", inspect.getdoc(part.__init__) or ""])
    for name, member in vars(part).items():
        method = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if not name.startswith("_") and inspect.isfunction(method):
            definitions = [vars(base)[name] for base in part.__mro__ if name in vars(base)]
            texts = [definition.__doc__ or "" for definition in definitions]
            yield from undocumented(f"{label}.{name}", inspect.unwrap(method), [*texts, inspect.getdoc(method) or ""])


def test_public_arguments_have_descriptions():
    wrong = {argument for label, part in public_objects() for argument in arguments_without_description(label, part)}
    assert not wrong, sorted(wrong)


def test_identifiers_of_the_glossary_exist():
    identifiers = re.findall(r"`([\w.]+):(\w+)`", GLOSSARY.read_text())
    assert len(identifiers) >= 80
    missing = []
    for module, name in identifiers:
        try:
            found = hasattr(importlib.import_module(f"livens.{module}"), name)
        except ImportError:
            found = False
        if not found:
            missing.append(f"{module}:{name}")
    assert not missing, missing
