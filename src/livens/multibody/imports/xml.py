"""XML trees of untrusted robot files, with line numbers for error messages.

Document type and entity declarations are rejected, sizes and depths are bounded, numbers are finite. A document tracks
the elements and attributes that were read; `TrackedDocument.unread` returns the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from livens.errors import InputError
from livens.models.triangles import content

_MOST_BYTES = 32_000_000
_MOST_NODES = 200_000
_DEEPEST = 200
_LONG = 400
#: Largest allowed magnitude of numbers; squares of larger numbers may overflow.
_ABSURD = 1e15


@dataclass(eq=False)
class Node:
    """XML element: tag, attributes and children."""

    tag: str
    attributes: dict[str, str]
    line: int
    document: Document
    file: str
    children: list[Node] = field(default_factory=list)
    #: Nodes with default attributes (default classes), highest priority first.
    behind: tuple[Node, ...] = ()

    @property
    def name(self) -> str:
        return self.attributes.get("name", "")

    def error(self, words: str) -> InputError:
        """Return an InputError with file, line and element."""
        called = f" '{self.name[:60]}'" if self.name else ""
        if len(words) > _LONG:  # content of the file may have any length
            words = f"{words[: _LONG // 2]} ... {words[-_LONG // 4 :]}"
        return InputError(f"{self.file}, line {self.line}: <{self.tag}>{called}: {words}")

    # -- within -------------------------------------------------------------------------------------------------------
    def all(self, *tags: str) -> Iterator[Node]:
        """Iterate over the children with one of these tags, in order."""
        self.document.asked |= {(self.tag, tag) for tag in tags}
        return (child for child in self.children if child.tag in tags)

    def one(self, tag: str) -> Node | None:
        """Return the child with this tag, or None; raise an InputError if there are several."""
        found = list(self.all(tag))
        if len(found) > 1:
            raise found[1].error(f"a second <{tag}> in <{self.tag}>")
        return found[0] if found else None

    def must(self, tag: str) -> Node:
        found = self.one(tag)
        if found is None:
            raise self.error(f"a <{tag}> is missing")
        return found

    # -- attributes ---------------------------------------------------------------------------------------------------
    def get(self, name: str) -> str | None:
        """Return an attribute of the element or of its defaults."""
        self.document.asked.add((self.tag, f"@{name}"))
        return next((node.attributes[name] for node in (self, *self.behind) if name in node.attributes), None)

    def text(self, name: str, default: str | None = None) -> str:
        found = self.get(name)
        if found is None and default is None:
            raise self.error(f"the attribute '{name}' is missing")
        return (found if found is not None else default or "").strip()

    def choice(self, name: str, default: str, allowed: Sequence[str]) -> str:
        found = self.text(name, default)
        if found not in allowed:
            raise self.error(f"{name} must be one of {', '.join(allowed)}, got '{found[:40]}'")
        return found

    def numbers(self, name: str, count: int | Sequence[int] | None, default: Any = None) -> Any:
        """Return an attribute as an array of finite numbers of the allowed length, or the default."""
        found = self.get(name)
        if found is None:
            return default
        words = found.replace(",", " ").split()
        allowed = (count,) if isinstance(count, int) else count
        if allowed is not None and len(words) not in allowed:
            raise self.error(f"{name} must be {' or '.join(map(str, allowed))} numbers, got '{found[:60]}'")
        try:
            values = np.array([float(word) for word in words])
        except ValueError:
            raise self.error(f"{name} must be numbers, got '{found[:60]}'") from None
        if not np.all(np.isfinite(values)) or np.abs(values).max(initial=0.0) > _ABSURD:
            raise self.error(f"{name} must be finite numbers of a sensible size, got '{found[:60]}'")
        return values

    def number(self, name: str, default: float | None = None) -> float:
        found = self.numbers(name, 1)
        if found is None and default is None:
            raise self.error(f"the attribute '{name}' is missing")
        return float(found[0]) if found is not None else float(default or 0.0)

    def positive(self, name: str, default: float | None = None) -> float:
        found = self.number(name, default)
        if not found > 0:
            raise self.error(f"{name} must be greater than 0, got {found:g}")
        return found

    def not_negative(self, name: str, default: float | None = None) -> float:
        found = self.number(name, default)
        if found < 0:
            raise self.error(f"{name} must not be negative, got {found:g}")
        return found

    def direction(self, name: str, default: Any = None) -> np.ndarray:
        """Return an attribute as a unit vector."""
        given = self.numbers(name, 3, default)
        if given is None:
            raise self.error(f"the attribute '{name}' is missing")
        length = float(np.linalg.norm(given))
        if not length > 1e-10:
            raise self.error(f"{name} must be a direction, and not zero")
        return np.asarray(np.asarray(given, dtype=float) / length)

    def walk(self) -> Iterator[Node]:
        """Iterate over the element and all its descendants."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(eq=False)
class Document:
    """XML document that tracks what was read: ``(tag, inner tag)`` and ``(tag, "@attribute")``."""

    path: Path
    root: Node = field(init=False)
    asked: set[tuple[str, str]] = field(default_factory=set)

    def known(self, node: Node) -> None:
        """Mark a node and all its content as read."""
        self.asked |= {(one.tag, f"@{name}") for one in node.walk() for name in one.attributes}
        self.asked |= {(one.tag, child.tag) for one in node.walk() for child in one.children}

    def unread(self) -> Counter[tuple[str, str]]:
        """Return the content that was never read, with its number of occurrences."""
        found: Counter[tuple[str, str]] = Counter()

        def look(node: Node) -> None:
            for name in node.attributes:
                if name != "name" and (node.tag, f"@{name}") not in self.asked:
                    found[node.tag, f"@{name}"] += 1
            for child in node.children:
                if (node.tag, child.tag) in self.asked:
                    look(child)
                else:
                    found[node.tag, child.tag] += 1

        look(self.root)
        return found


def read(path: Path, document: Document | None = None) -> Node:
    """Parse a file and return its root element; `document` is the including document, if any."""
    raw = content(path, "the file", _MOST_BYTES)
    owner = document or Document(path)
    builder = _Builder(path, owner)
    try:
        builder.parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise InputError(f"{path.name}, line {error.lineno}: no XML: {expat.ErrorString(error.code)}") from None
    except (UnicodeError, ValueError, LookupError) as error:
        raise InputError(f"{path.name}: no XML: {error}") from None
    assert builder.root is not None
    if document is None:
        owner.root = builder.root
    return builder.root


class _Builder:
    """Tree builder with the handlers of the expat parser."""

    def __init__(self, path: Path, document: Document) -> None:
        self.path, self.document = path, document
        self.root: Node | None = None
        self.open: list[Node] = []
        self.count = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.refuse
        self.parser.EntityDeclHandler = self.refuse

    def refuse(self, *_: Any) -> None:
        raise InputError(
            f"{self.path.name}, line {self.parser.CurrentLineNumber}: type and entity declarations are not read"
        )

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > _MOST_NODES or len(self.open) >= _DEEPEST:
            raise InputError(f"{self.path.name}: more than {_MOST_NODES} elements, or more than {_DEEPEST} nested")
        node = Node(tag, attributes, self.parser.CurrentLineNumber, self.document, self.path.name)
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node
        self.open.append(node)

    def end(self, tag: str) -> None:
        self.open.pop()
