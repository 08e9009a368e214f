"""Mesh files of a robot description: path resolution and cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from livens.errors import InputError
from livens.models.triangles import Triangles, read


class Files:
    """Resolver of mesh files relative to a folder; `packages` maps package names to folders."""

    def __init__(self, folder: Path, packages: Mapping[str, Path] | None = None) -> None:
        self.folder, self.packages = folder, dict(packages or {})
        self._read: dict[Path, Triangles] = {}

    def find(self, name: str) -> Path:
        """Return the path of ``package://name/...``, ``file://...``, or of an absolute or relative path."""
        if "\0" in name:
            raise InputError("a file name contains a NUL character")
        kind, mark, rest = name.partition("://")
        if not mark:
            return self.folder / name
        if kind == "file":
            return self.folder / unquote(rest)
        if kind not in ("package", "model"):
            raise InputError(f"'{name[:80]}' is not a local file; remote files are not loaded")
        package, _, inner = unquote(rest).partition("/")
        if package in self.packages:
            return self.packages[package] / inner
        # the package is one of the ancestors of the folder, or a sibling of an ancestor
        for above in (self.folder, *self.folder.parents):
            for place in (above / inner if above.name == package else None, above / package / inner):
                if place is not None and place.is_file():
                    return place
        raise InputError(f"'{name[:80]}' was not found: pass packages={{'{package}': folder}}")

    def mesh(self, name: str) -> Triangles:
        path = self.find(name)
        if path not in self._read:
            self._read[path] = read(path)
        return self._read[path]
