"""Names and prose of the source follow the rules of CONTRIBUTING.md; the glossary lists existing identifiers."""

import ast
import contextlib
import functools
import importlib
import inspect
import re
import tomllib
from collections import defaultdict
from pathlib import Path

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import livens
from livens.errors import MissingExtraError

SOURCE = Path(livens.__file__).parent
TESTS = Path(__file__).parents[1]
GLOSSARY = TESTS.parent / "docs" / "reference" / "glossary.md"
WORDS = tomllib.loads((TESTS / "language" / "words.toml").read_text())
EXCLUDED = set(WORDS["names"].split())
#: Largest number of times that `Any` is written in the source; it may fall, not rise.
MOST_ANY = 2630
EXCEPTIONS = {(entry["file"], entry["name"]) for entry in WORDS["exceptions"]}


@functools.cache
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


def test_maps_of_packages_name_existing_modules():
    """Package docstrings list their modules in entries such as ``- `module`: text``."""
    wrong = []
    for path in SOURCE.rglob("__init__.py"):
        for entry in re.findall(r"^- ((?:`\w+`(?:, )?)+)", ast.get_docstring(ast.parse(path.read_text())) or "", re.M):
            for name in re.findall(r"`(\w+)`", entry):
                if not (path.with_name(f"{name}.py").exists() or (path.parent / name).is_dir()):
                    wrong.append(f"{path.relative_to(SOURCE)}: {name}")
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


def sentences(text):
    """Yield the sentences of a docstring, without literal blocks, formulas, types of parameters and examples."""
    is_literal, last = False, ""
    for paragraph in re.split(r"\n\s*\n", text):
        is_literal = paragraph.startswith(" ") and (is_literal or last.endswith("::"))
        last = paragraph
        if is_literal or ">>>" in paragraph:
            continue
        headless = re.sub(r"^.*\n-+$", "", paragraph, flags=re.M)
        prose = "\n".join(line for line in headless.splitlines() if not re.match(r"\S.* : ", line))
        plain = re.sub(r"``[^`]*``|`[^`]*`", "code", prose)
        yield from re.split(r"(?<=[.:;])\s+|\n- ", plain)


def test_sentences_of_docstrings_have_at_most_thirty_words():
    wrong = [
        f"{file}:{line} {count} words: {' '.join(sentence.split())[:80]}"
        for file, tree in sources().items()
        for text, line in docstrings(tree)
        for sentence in sentences(text)
        if (count := len(re.findall(r"[A-Za-z][\w'-]+", sentence))) > 30
    ]
    assert not wrong, "\n".join(wrong)


def test_names_in_docstrings_exist():
    """A name in single backticks is an identifier, a string or a module of the package."""
    trees = sources()
    texts = [(file, line, text) for file, tree in trees.items() for text, line in docstrings(tree)]
    code = "\n".join((SOURCE / file).read_text() for file in trees)
    for _, _, text in texts:
        code = code.replace(text.splitlines()[0], "")
    known = {word for file in trees for word in file.removesuffix(".py").split("/")}
    known |= set(re.findall(r"\w+", re.sub(r'"""[\s\S]*?"""', "", code)))
    wrong = [
        f"{file}:{line} {name}"
        for file, line, text in texts
        for name in re.findall(r"(?<!`)`([A-Za-z_]\w*)`(?!`)", text)
        if name not in known
    ]
    assert not wrong, "\n".join(wrong)


def test_exceptions_are_few_and_have_reasons():
    assert len(WORDS["exceptions"]) < 40
    assert all(entry["reason"].strip() for entry in WORDS["exceptions"])
    names = {(file, name) for file, tree in sources().items() for name, _ in defined_names(tree)}
    assert names >= EXCEPTIONS, f"exceptions that are not needed: {EXCEPTIONS - names}"


def test_untyped_values_do_not_spread():
    """`Any` is for values of libraries without types; a new annotation takes a type of `livens.types`, or `object`."""
    counts = {path: len(re.findall(r"\bAny\b", path.read_text())) for path in SOURCE.rglob("*.py")}
    assert sum(counts.values()) <= MOST_ANY, sorted((n, path.name) for path, n in counts.items() if n)[-20:]


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


#: Classes of objects that public functions return and that users do not construct, so that their constructors are
#: not public.
RETURNED = (
    "analysis.accuracy.estimate:Estimate",
    "analysis.linearise:Linearisation",
    "analysis.report:Report",
    "analysis.signals:Signal",
    "analysis.singular_configurations:SingularConfiguration",
    "multibody.armature:JointArmature",
    "multibody.beam:Beam",
    "multibody.body:Body",
    "multibody.body:Marker",
    "multibody.body:MovingMarker",
    "multibody.body_constraint:BodyConstraint",
    "multibody.couplings:Coupling",
    "multibody.inputs:Input",
    "multibody.joint:Joint",
    "multibody.mobility:MobilityReport",
    "multibody.penalty_joint:PenaltyJoint",
    "results.record:EventRecord",
    "results.record:RunInfo",
    "results.record:Summary",
    "run.bridges.ode_result:DenseOutput",
    "run.bridges.ode_result:OdeResult",
    "run.derivatives.ensemble_jvp:Tangents",
    "run.derivatives.gradient:EnsembleGradients",
    "run.derivatives.gradient:Gradient",
    "run.derivatives.gradient:ValueAndGradient",
    "run.derivatives.hessian:Hessian",
    "run.drive:Drive",
    "run.prepare:Prepared",
    "run.single_steps:MotionState",
)


def returned_classes():
    """Yield (label, class) of the objects that public functions return."""
    for entry in RETURNED:
        module, name = entry.split(":")
        yield name, getattr(importlib.import_module(f"livens.{module}"), name)


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


#: Optional sections of numpydoc: extended summary, See Also and Examples.
OPTIONAL_SECTIONS = {"ES01", "SA01", "EX01"}
#: Sections that an override takes over from the definition of its base class: parameters and returned values.
INHERITED_SECTIONS = {"PR01", "RT01"}


def public_members(part):
    """Yield (class, name, method or property) of all public members of a class and its bases."""
    for base in part.__mro__:
        if base.__module__.startswith("livens"):
            for name, member in vars(base).items():
                method = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
                value = property(method.func) if isinstance(method, functools.cached_property) else method
                if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    yield base, name, value


def validation_errors(part, documented_in_base=False):
    """Return the errors of numpydoc; an override without a docstring has that of its base."""
    if documented_in_base and not part.__doc__:
        return []
    ignored = OPTIONAL_SECTIONS | (INHERITED_SECTIONS if documented_in_base else set())
    return [f"{code} {text}" for code, text in validate(get_doc_object(part))["errors"] if code not in ignored]


def test_public_docstrings_are_valid_numpydoc():
    for module in {*livens.ACCESSORS.values(), *livens.MULTIBODY_ACCESSORS.values()}:
        importlib.import_module(f"livens.{module}")  # attaches methods to Result and Multibody
    errors, checked = {}, set()
    for label, part in (*public_objects(), *returned_classes()):
        if part not in checked:
            checked.add(part)
            is_constructed = inspect.isfunction(part) or f"{part.__module__[7:]}:{part.__name__}" not in RETURNED
            errors[label] = [error for error in validation_errors(part) if is_constructed or "PR01" not in error]
        for base, name, member in public_members(part) if inspect.isclass(part) else ():
            if (base, name) not in checked:
                checked.add((base, name))
                inherited = any(getattr(vars(above).get(name), "__doc__", None) for above in base.__mro__[1:])
                errors[f"{label}.{name}"] = validation_errors(member, inherited)
    assert len(checked) > 700
    wrong = [f"{label}: {error}" for label, found in errors.items() for error in found]
    assert not wrong, "\n".join(wrong)


def test_identifiers_of_the_glossary_exist():
    identifiers = re.findall(r"`([\w.]+):([\w.]+)`", GLOSSARY.read_text())
    assert len(identifiers) >= 80
    missing = []
    for module, name in identifiers:
        try:
            found = functools.reduce(getattr, name.split("."), importlib.import_module(f"livens.{module}")) is not None
        except (ImportError, AttributeError):
            found = False
        if not found:
            missing.append(f"{module}:{name}")
    assert not missing, missing
