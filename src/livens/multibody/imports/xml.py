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
from livens.scene.mesh import read_limited

_MAX_BYTES = 32_000_000
_MAX_NODES = 200_000
_MAX_DEPTH = 200
_MAX_MESSAGE = 400
#: Largest number of characters in the text of an element.
_MAX_TEXT = 100_000
#: Largest allowed magnitude of numbers; squares of larger numbers may overflow.
_MAX_MAGNITUDE = 1e15


@dataclass(eq=False)
class XmlNode:
    """XML element: tag, attributes and children."""

    tag: str
    attributes: dict[str, str]
    line: int
    document: TrackedDocument
    file: str
    children: list[XmlNode] = field(default_factory=list)
    #: Nodes with default attributes (default classes), highest priority first.
    defaults: tuple[XmlNode, ...] = ()
    #: Text of the element.
    content: str = ""

    @property
    def name(self) -> str:
        return self.attributes.get("name", "")

    def error(self, message: str) -> InputError:
        """Return an InputError with file, line and element."""
        label = f" '{self.name[:60]}'" if self.name else ""
        if len(message) > _MAX_MESSAGE:  # content of the file may have any length
            message = f"{message[: _MAX_MESSAGE // 2]} ... {message[-_MAX_MESSAGE // 4 :]}"
        return InputError(f"{self.file}, line {self.line}: <{self.tag}>{label}: {message}")

    def refuse(self, message: str) -> None:
        """Raise an InputError about content that is not supported; without strictness, note that it is ignored."""
        error = self.error(message)
        if self.document.strict:
            raise error
        self.document.skipped.append(str(error))

    # -- within -------------------------------------------------------------------------------------------------------
    def children_with_tag(self, *tags: str) -> Iterator[XmlNode]:
        """Iterate over the children with one of these tags, in order."""
        self.document.read |= {(self.tag, tag) for tag in tags}
        return (child for child in self.children if child.tag in tags)

    def optional_child(self, tag: str) -> XmlNode | None:
        """Return the child with this tag, or None; raise an InputError if there are several."""
        matches = list(self.children_with_tag(tag))
        if len(matches) > 1:
            raise matches[1].error(f"a second <{tag}> in <{self.tag}>")
        return matches[0] if matches else None

    def required_child(self, tag: str) -> XmlNode:
        child = self.optional_child(tag)
        if child is None:
            raise self.error(f"a <{tag}> is missing")
        return child

    # -- attributes ---------------------------------------------------------------------------------------------------
    def get(self, name: str) -> str | None:
        """Return an attribute of the element or of its defaults."""
        self.document.read.add((self.tag, f"@{name}"))
        return next((node.attributes[name] for node in (self, *self.defaults) if name in node.attributes), None)

    def text(self, name: str, default: str | None = None) -> str:
        value = self.get(name)
        if value is None and default is None:
            raise self.error(f"the attribute '{name}' is missing")
        return (value if value is not None else default or "").strip()

    def choice(self, name: str, default: str, allowed: Sequence[str]) -> str:
        value = self.text(name, default)
        if value not in allowed:
            raise self.error(f"{name} must be one of {', '.join(allowed)}, got '{value[:40]}'")
        return value

    def numbers(
        self, name: str, count: int | Sequence[int] | None, default: object = None, infinite: bool = False
    ) -> Any:
        """Return an attribute as an array of finite numbers of the allowed length, or the default."""
        value = self.get(name)
        if value is None:
            return default
        tokens = value.replace(",", " ").split()
        allowed = (count,) if isinstance(count, int) else count
        if allowed is not None and len(tokens) not in allowed:
            raise self.error(f"{name} must be {' or '.join(map(str, allowed))} numbers, got '{value[:60]}'")
        if not tokens:
            raise self.error(f"{name} must be numbers, but it is empty")
        try:
            values = np.array([float(token) for token in tokens])
        except ValueError:
            raise self.error(f"{name} must be numbers, got '{value[:60]}'") from None
        finite = values[np.isfinite(values)] if infinite and not np.isnan(values).any() else values
        largest = np.inf if infinite else _MAX_MAGNITUDE
        if not np.all(np.isfinite(finite)) or np.abs(finite).max(initial=0.0) > largest:
            raise self.error(f"{name} must be finite numbers of a sensible size, got '{value[:60]}'")
        return values

    def number(self, name: str, default: float | None = None, infinite: bool = False) -> float:
        values = self.numbers(name, 1, infinite=infinite)
        if values is None and default is None:
            raise self.error(f"the attribute '{name}' is missing")
        return float(values[0]) if values is not None else float(default or 0.0)

    def positive(self, name: str, default: float | None = None) -> float:
        value = self.number(name, default)
        if not value > 0:
            raise self.error(f"{name} must be greater than 0, got {value:g}")
        return value

    def not_negative(self, name: str, default: float | None = None) -> float:
        value = self.number(name, default)
        if value < 0:
            raise self.error(f"{name} must not be negative, got {value:g}")
        return value

    def direction(self, name: str, default: object = None) -> np.ndarray:
        """Return an attribute as a unit vector."""
        vector = self.numbers(name, 3, default)
        if vector is None:
            raise self.error(f"the attribute '{name}' is missing")
        length = float(np.linalg.norm(vector))
        if not length > 1e-10:
            raise self.error(f"{name} must be a direction, and not zero")
        return np.asarray(np.asarray(vector, dtype=float) / length)

    def iterate(self) -> Iterator[XmlNode]:
        """Iterate over the element and all its descendants."""
        yield self
        for child in self.children:
            yield from child.iterate()


@dataclass(eq=False)
class TrackedDocument:
    """XML document that tracks what was read: ``(tag, inner tag)`` and ``(tag, "@attribute")``."""

    path: Path
    root: XmlNode = field(init=False)
    read: set[tuple[str, str]] = field(default_factory=set)
    #: Raise an error for content that is not supported; otherwise it is ignored and listed in `skipped`.
    strict: bool = True
    skipped: list[str] = field(default_factory=list)

    def mark_read(self, node: XmlNode) -> None:
        """Mark a node and all its content as read."""
        self.read |= {(descendant.tag, f"@{name}") for descendant in node.iterate() for name in descendant.attributes}
        self.read |= {(descendant.tag, child.tag) for descendant in node.iterate() for child in descendant.children}

    def unread(self) -> Counter[tuple[str, str]]:
        """Return the content that was never read, with its number of occurrences."""
        ignored: Counter[tuple[str, str]] = Counter()

        def collect(node: XmlNode) -> None:
            for name in node.attributes:
                if name != "name" and (node.tag, f"@{name}") not in self.read:
                    ignored[node.tag, f"@{name}"] += 1
            for child in node.children:
                if (node.tag, child.tag) in self.read:
                    collect(child)
                else:
                    ignored[node.tag, child.tag] += 1

        collect(self.root)
        return ignored


def read(path: Path, document: TrackedDocument | None = None, strict: bool = True, raw: bytes | None = None) -> XmlNode:
    """Parse a file, or `raw` content, and return its root element; `document` is the including document, if any."""
    raw = read_limited(path, "the file", _MAX_BYTES) if raw is None else raw
    owner = document or TrackedDocument(path, strict=strict)
    builder = _Builder(path, owner)
    try:
        builder.parser.Parse(raw.lstrip(), True)  # an XML declaration may follow blank lines
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

    def __init__(self, path: Path, document: TrackedDocument) -> None:
        self.path, self.document = path, document
        self.root: XmlNode | None = None
        self.open: list[XmlNode] = []
        self.count = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.add_text
        self.parser.StartDoctypeDeclHandler = self.refuse
        self.parser.EntityDeclHandler = self.refuse

    def refuse(self, *_: object) -> None:
        raise InputError(
            f"{self.path.name}, line {self.parser.CurrentLineNumber}: type and entity declarations are not read"
        )

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > _MAX_NODES or len(self.open) >= _MAX_DEPTH:
            raise InputError(f"{self.path.name}: more than {_MAX_NODES} elements, or more than {_MAX_DEPTH} nested")
        node = XmlNode(tag, attributes, self.parser.CurrentLineNumber, self.document, self.path.name)
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node
        self.open.append(node)

    def add_text(self, text: str) -> None:
        if self.open and len(self.open[-1].content) < _MAX_TEXT:
            self.open[-1].content += text

    def end(self, tag: str) -> None:
        self.open.pop()
