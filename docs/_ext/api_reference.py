"""Tables of the API reference: names on its pages and members of its classes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from pydoc import locate

PAGES = Path(__file__).parents[1] / "reference" / "api"


def listed_names() -> set[str]:
    """Return the full names in the tables of the API reference."""
    names = set()
    for page in PAGES.glob("*.md"):
        for block in re.findall(r"```\{eval-rst\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            module = re.findall(r"currentmodule:: (\S+)", block)[0] if "currentmodule" in block else "livens"
            names |= {f"{module}.{name}" for name in re.findall(r"^   ([\w.]+)$", block, re.MULTILINE)}
    return names


def remove_stale_pages() -> None:
    """Remove generated pages of names that do not exist any more, or that no table lists."""
    names = listed_names()
    for page in (PAGES / "generated").glob("*.rst"):
        if locate(page.stem) is None or page.stem not in names:
            page.unlink()


def class_members() -> dict[str, list[tuple[str, str, bool]]]:
    """Return directive, name and "has its own page" of the public members of every class in the tables.

    Members are the attributes and methods that classes of the package define and describe.
    """
    names = listed_names()
    return {name: _members(name, cls, names) for name in names if inspect.isclass(cls := locate(name))}


def _members(class_name: str, cls: type, names: set[str]) -> list[tuple[str, str, bool]]:
    members = []
    for name in (name for name in dir(cls) if not name.startswith("_")):
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        value = inspect.getattr_static(cls, name)
        if owner is None or not owner.__module__.startswith("livens") or not inspect.getdoc(value):
            continue
        if callable(value) or isinstance(value, classmethod | staticmethod):
            directive = "automethod"
        elif hasattr(value, "__get__"):
            directive = "autoproperty" if isinstance(value, property) else "autoattribute"
        else:
            continue  # a plain value has the docstring of its type
        members.append((directive, name, f"{class_name}.{name}" in names))
    return members
