"""YAML reader: from a scenario file to dicts, lists and strings with line numbers.

All scalars stay strings: whether ``1e-3``, ``no`` or ``12:30`` is a number depends on the field, not on YAML's rules.
Aliases and tags are rejected, so that a small file cannot expand to a large tree.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from livens.errors import InputError
from livens.scenario.quoting import quoted, with_caret

MAX_BYTES = 100_000
MAX_DEPTH = 8
MAX_VALUES = 10_000

#: Path of a value in the document: keys and list indices.
YamlPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """Content of a file with the line numbers of its values."""

    tree: Any
    source: str
    lines: dict[YamlPath, int] = field(default_factory=dict)

    def location(self, path: YamlPath = ()) -> str:
        """Return the location ``file, line 3, system.kinetic``, which starts every message."""
        parts = [self.source]
        prefix = path
        while prefix and prefix not in self.lines:
            prefix = prefix[:-1]
        if prefix in self.lines:
            parts.append(f"line {self.lines[prefix]}")
        if path:
            keys = [f"[{key}]" if isinstance(key, int) else f".{quoted(key, 40)}" for key in path]
            parts.append("".join(keys).removeprefix("."))
        return ", ".join(parts)

    def error(self, path: YamlPath, reason: object) -> InputError:
        return InputError(f"{self.location(path)}: {reason}")


def read(path: Path) -> Document:
    """Read a scenario file."""
    return document(_text(path), str(path))


def _text(path: Path) -> str:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"'{path}' is a folder, not a scenario file")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"'{path}' is not a regular file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'; write an example with: livens init {path}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the scenario file '{quoted(path)}': {error}") from None
    if len(content) > MAX_BYTES:
        raise InputError(f"{path}: a scenario file may have at most {MAX_BYTES} bytes, this one has more")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: this is not a text file: byte {error.start} is not UTF-8") from None


def document(text: str, source: str) -> Document:
    """Parse the text of a scenario; `source` is its name in messages."""
    return _Reader(text, source).document()


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source
        self._loader: Any = None
        self._lines: dict[YamlPath, int] = {}
        self._values = 0

    def _error(self, line: int, reason: str) -> InputError:
        return InputError(f"{self._source}, line {line}: {reason}")

    def document(self) -> Document:
        try:
            self._loader = yaml.SafeLoader(self._text)
            tree = self._documents(iter(self._loader.get_event, None))
        except yaml.MarkedYAMLError as error:
            raise self._syntax_error(error) from None
        except yaml.reader.ReaderError as error:
            line = self._text.count("\n", 0, error.position) + 1
            raise self._error(
                line, f"this is not a text file: it contains the character #x{error.character:02x}"
            ) from None
        except (ValueError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            # escapes such as "\UFFFFFFFF" raise errors in the YAML scanner
            reason = "this is not valid YAML: an escape or a number is out of range"
            raise self._error(self._loader.line + 1, reason) from None
        return Document(tree, self._source, self._lines)

    def _syntax_error(self, error: yaml.MarkedYAMLError) -> InputError:
        message = ", ".join(part for part in (error.context, error.problem) if part)
        if "not allowed here" in message:
            message += " (quote values that contain ': ' or start with '- ')"
        mark = error.problem_mark
        if mark is None or (mark.index >= len(self._text) and error.context_mark is not None):
            mark = error.context_mark  # points at the unclosed bracket instead of the end of the file
        if mark is None:
            return InputError(f"{self._source}: this is not valid YAML: {message}")
        return self._error(mark.line + 1, f"this is not valid YAML: {message}\n{with_caret(self._text, mark.index)}")

    def _documents(self, events: Iterator[object]) -> Any:
        tree, has_document = None, False
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and has_document:
                raise self._error(_line(event), "a scenario file must contain one document; a second one starts here")
            if isinstance(event, yaml.NodeEvent):
                tree, has_document = self._value(event, events, ()), True
        if tree is None:
            raise InputError(f"{self._source}: the file is empty; write an example with: livens init")
        return tree

    def _value(self, event: Any, events: Iterator[Any], path: YamlPath) -> Any:
        line = _line(event)
        self._lines.setdefault(path, line)
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._error(line, f"a scenario may have at most {MAX_VALUES} values")
        if isinstance(event, yaml.AliasEvent):
            reason = f"alias '*{quoted(event.anchor)}' is not allowed in a scenario: write the value out"
            raise self._error(line, reason)
        if getattr(event, "tag", None) not in (None, "!"):
            raise self._error(line, f"tag '{quoted(event.tag)}' is not allowed in a scenario: remove it")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, line)
        if len(path) >= MAX_DEPTH:
            raise self._error(line, f"this is nested too deeply (at most {MAX_DEPTH} levels)")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(events, path)
        return self._mapping(events, path)

    def _scalar(self, event: Any, line: int) -> str | None:
        text = str(event.value)
        if event.style is None and text in ("", "~", "null"):
            return None
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise self._error(line, "this text contains half a character (a lone surrogate)")
        return text

    def _sequence(self, events: Iterator[object], path: YamlPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(self._value(event, events, (*path, len(items))))
        return items

    def _mapping(self, events: Iterator[object], path: YamlPath) -> dict[str, object]:
        items: dict[str, object] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            line = _line(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise self._error(line, "the name of a field must be a string")
            key = self._scalar(event, line) or str(event.value)
            item_path = (*path, key)
            if key in items:
                raise self._error(line, f"'{quoted(key)}' is given twice, first on line {self._lines[item_path]}")
            self._lines[item_path] = line
            items[key] = self._value(next(events), events, item_path)
        return items
