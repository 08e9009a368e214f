"""Atomic replacement of files: readers get the old or the new content, also after a crash."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def temporary_path(path: Path) -> Path:
    """Return the path of the temporary file of this process beside a file."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


@contextlib.contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` at the end. It is removed if an exception occurs."""
    part = temporary_path(path)
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically and synchronise it to disk."""
    with replace_atomically(path) as part:
        part.write_bytes(content)
