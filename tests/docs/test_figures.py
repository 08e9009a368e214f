"""Pictures of the documentation: every picture is shown on a page, and every script makes a picture that exists."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *DOCS.rglob("*.md")]


def test_every_picture_is_shown_on_a_page():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = {Path(target).name for target in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)}
    pictures = {path.name for path in (DOCS / "pictures").rglob("*") if path.is_file()}
    assert pictures - shown == set()


def test_every_script_makes_a_picture_of_the_documentation(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "figures")
    spec = importlib.util.spec_from_file_location("make_figures", DOCS / "figures" / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert {name for name in module.PICTURES if not (DOCS / "pictures" / f"{name}.png").exists()} == set()


def test_pictures_are_small():
    assert {path.name for path in (DOCS / "pictures").rglob("*.*") if path.stat().st_size > 300_000} == set()
