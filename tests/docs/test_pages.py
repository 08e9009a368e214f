"""Pages of the documentation: every Python block runs, printed lines are shown, links and names exist."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from livens.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
from api_reference import listed_names  # noqa: E402

GENERATED = {DOCS / "gallery", DOCS / "reference" / "schemes", DOCS / "reference" / "api" / "generated"}
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in DOCS.rglob("*.md") if not GENERATED & set(path.parents)),
]
BLOCK = re.compile(
    r"(<!-- [^>]+ -->\n)?^```(python|\{code-cell\})[^\n]*\n(?::\w[^\n]*\n)*(.*?)^```", re.DOTALL | re.MULTILINE
)


#: Conditions on the names that the blocks of a page define, by page.
EXPECTED = {
    "docs/howto/ensembles.md": lambda n: n["many"].q.shape == (40, 31, 2) and Path("pendulums.h5").exists(),
    "docs/howto/taylor.md": lambda n: len(n["run"].events) == 6,
    "docs/howto/large-systems.md": lambda n: (
        len(n["net"].element_groups) == 3 and n["few"].stored == ("t", "q") and Path("chain.h5").exists()
    ),
    # the data belong to g = 9.5
    "docs/howto/gradients.md": lambda n: n["many"].values.shape == (3,) and n["many"].values.argmin() == 1,
}


@pytest.fixture(autouse=True)
def clean_up():
    """Close the figures that a page opens, and remove the schemes that it defines."""
    from matplotlib import pyplot

    import livens as lv
    from livens.schemes.core.scheme import Scheme

    lv.schemes.all()  # schemes are registered when they are imported
    registered = dict(Scheme._registry), dict(Scheme._families)
    yield
    pyplot.close("all")
    for table, entries in zip((Scheme._registry, Scheme._families), registered, strict=True):
        table.clear()
        table.update(entries)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks_of(page):
    """Return ``(code, whether the page shows its output)`` of the Python blocks of a page that run.

    A comment before a block declares an exception: ``<!-- not run: reason -->`` or ``<!-- output varies -->``. The
    output of the cells of tutorials is inserted when the site is built.
    """
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [
        (code, kind == "python" and "output varies" not in comment)
        for comment, kind, code in blocks
        if "not run:" not in comment
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_the_examples_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    """Every block runs, one after the other in one namespace, and the page contains every printed line."""
    if page.name == "CONTRIBUTING.md":
        pytest.skip("its blocks are extension files; tests/unit/test_from_outside.py runs them")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    shown = {line.strip() for line in page.read_text(encoding="utf-8").splitlines()}
    for code, output_is_shown in blocks_of(page):
        exec(compile(code, name_of(page), "exec"), namespace)
        printed = capsys.readouterr().out.splitlines()
        assert not output_is_shown or [line for line in printed if line.strip() not in shown] == []
    assert EXPECTED.get(name_of(page), lambda names: True)(namespace)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_modules_and_names_exist(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:src|tests|docs)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"\]\(([\w./-]+\.(?:md|png|gif|svg))(?:#[\w-]+)?\)", text):
        built = (page.parent / target).resolve()
        assert built.exists() or GENERATED & set(built.parents) or built.name == "command-line.md", target
    for name in re.findall(r"`(livens(?:\.\w+)+)`", text):
        resolve(name)
    for name in re.findall(r"\blv((?:\.[A-Za-z]\w*)+)", text):
        resolve(f"livens{name}")


def resolve(name):
    """Return the module, or the object in a module, of this name; None if the object needs a missing extra."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            try:
                value = getattr(value, part)
            except MissingExtraError:  # a declared name of an optional dependency
                assert part in value.__all__, name
                return None
        return value
    raise AssertionError(name)


def test_the_readme_is_short_and_begins_with_an_animation_and_the_install_line():
    from PIL import Image

    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    first_screen = "\n".join(lines[:30])
    (animation,) = re.findall(r"!\[[^\]]+\]\((\S+\.gif)\)", first_screen)
    with Image.open(ROOT / animation) as image:
        assert image.n_frames > 20
    for command in ("pip install", "make demo", "make test"):
        assert command in first_screen, command


def test_the_numbers_of_the_readme_hold():
    """Counts of schemes, problems and scripts; conservation and accuracy of the pendulum after ten thousand steps."""
    import livens as lv
    from livens.schemes.core.catalogue import all_rows

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    families, examples, scripts = (
        int(re.search(pattern, text)[1])
        for pattern in (r"More than (\d+) families", r"more than (\d+) examples", r"(\d+) scripts")
    )
    assert families < len(list(all_rows())) and examples < len(list(lv.problems.all()))
    assert scripts == len(list((ROOT / "examples").glob("*.py")))
    pendulum = lv.System(
        coordinates="x y",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, k: k.m * k.g * q[1],
        constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
        parameters=dict(m=1.0, l=1.0, g=9.81),
    )
    start = dict(q0=[-1, 0], v0=[0, 0], h=1e-3, t_end=10)
    run = lv.simulate(pendulum, **start, scheme="livens-em")
    reference = lv.simulate(pendulum, **start, scheme="suzuki-4:livens-em").q[-1]
    assert run.summary.max_energy_drift < 2e-14 and run.summary.max_constraint < 5e-16
    assert 4e-5 < np.abs(run.q[-1] - reference).max() < 6e-5


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in DOCS.rglob("*.md"):
        for body in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            entries = [line.strip() for line in body.splitlines() if line.strip() and not line.startswith(":")]
            targets = [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries]
            listed |= {(page.parent / f"{target}.md").resolve() for target in targets}
    pages = {page for page in PAGES if DOCS in page.parents and page != DOCS / "index.md"}
    assert pages - listed == set()


def test_indexes_name_every_page_of_their_section_and_count_the_tutorials():
    for section in ("start", "learn", "howto", "theory", "reference"):
        index = (DOCS / section / "index.md").read_text(encoding="utf-8")
        pages = {page.stem for page in (DOCS / section).glob("*.md") if page.stem != "index"}
        assert {page for page in pages if not re.search(rf"\b{page}\b", index)} == set(), section
    numbers = ("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty")
    number = numbers[len(list((DOCS / "learn").glob("*.md"))) - 1 - 14]
    assert f"{number} tutorials" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{number.capitalize()} tutorials" in (DOCS / "learn" / "index.md").read_text(encoding="utf-8")


#: Public modules without pages of their own: registries, single constants and the modules of optional packages.
WITHOUT_PAGE = {"deg", "mm", "rpm", "bridges", "observe", "reproduce", "scenario"}
#: Members for other layers of the package: they are public for extensions, and their docstrings describe them.
FOR_EXTENSIONS = {
    "attach", "check_parameters", "energy_round_off_sums", "energy_scale", "equation_label", "fingerprint_data",
    "initial_state", "initial_values_from", "is_guaranteed_by", "is_invariant", "monitored_constraints",
    "monitored_element_sums", "monitored_energy", "observable_element_sums", "parameter_vector",
    "roundoff_element_sums", "scene_for", "stored_parameters", "symmetry_generator", "taylor_control", "to_engine",
    "tolerances", "validate", "velocity_derivatives", "velocity_expression", "visuals",
}  # fmt: skip


def test_every_public_name_is_in_the_api_reference():
    import livens

    listed = listed_names()
    last = {name.rsplit(".", 1)[1] for name in listed}
    modules = {name.split(".")[1] for name in listed if name.count(".") > 1}
    assert {name for name in livens.__all__ if name not in last | modules | WITHOUT_PAGE} == set()
    for module in modules & {
        "contacts",
        "gym",
        "port_hamiltonian",
        "scaling",
        "schemes",
        "shapes",
        "study",
        "symmetry",
        "tableaus",
    }:
        public = importlib.import_module(f"livens.{module}").__all__
        missing = {name for name in public if name[0].islower() or not name.isupper()} - last
        assert missing == set(), module


@pytest.mark.parametrize(
    "name", ["Ensemble", "Hamiltonian", "Multibody", "PortHamiltonian", "Problem", "Result", "Schedule", "System"]
)
def test_every_public_method_is_in_the_api_reference(name):
    import livens

    listed, owner = listed_names(), getattr(livens, name)
    attached = {"Result": livens.ACCESSORS, "Multibody": livens.MULTIBODY_ACCESSORS}.get(name, {})
    for layer in attached.values():  # they attach their methods
        importlib.import_module(f"livens.{layer}")
    methods = {method for method, value in vars(owner).items() if callable(getattr(owner, method)) and method[0] != "_"}
    methods |= {method for method in attached if callable(getattr(owner, method, None)) and method[0] != "_"}
    missing = {method for method in methods if f"livens.{name}.{method}" not in listed}
    assert missing - FOR_EXTENSIONS == set()


def test_every_listed_name_exists_and_is_described():
    import livens

    for layer in {*livens.ACCESSORS.values(), *livens.MULTIBODY_ACCESSORS.values()}:
        importlib.import_module(f"livens.{layer}")  # attached methods
    for name in sorted(listed_names()):
        assert (getattr(resolve(name), "__doc__", None) or "").strip() or "gym" in name, name
