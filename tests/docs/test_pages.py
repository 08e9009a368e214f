"""Pages of the documentation: every Python block runs, printed lines are shown, links and names exist."""

import importlib
import re
from pathlib import Path

import pytest

from livens.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
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


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in DOCS.rglob("*.md"):
        for body in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            entries = [line.strip() for line in body.splitlines() if line.strip() and not line.startswith(":")]
            targets = [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries]
            listed |= {(page.parent / f"{target}.md").resolve() for target in targets}
    pages = {page for page in PAGES if DOCS in page.parents and page != DOCS / "index.md"}
    assert pages - listed == set()


def test_every_public_name_is_in_the_api_reference():
    import livens

    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference" / "api").glob("*.md"))
    listed = set(re.findall(r"^   ([\w.]+)$", text, re.MULTILINE))
    modules = set(re.findall(r"currentmodule:: livens\.(\w+)", text))
    constants = {"deg", "mm", "rpm", "bridges", "observe", "reproduce", "scenario"}
    missing = {name for name in livens.__all__ if name not in listed | modules | constants}
    assert missing == set()
