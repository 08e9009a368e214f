"""Mesh files of a robot description: path resolution and cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from livens.errors import InputError
from livens.scene.mesh import TriangleMesh, load_mesh
from livens.validation import check_readable_path


class MeshFiles:
    """Resolver of mesh files relative to a folder; `packages` maps package names to folders."""

    def __init__(self, folder: Path, packages: Mapping[str, Path] | None = None) -> None:
        self.folder, self.packages = folder, dict(packages or {})
        self._cache: dict[Path, TriangleMesh] = {}

    def find(self, name: str) -> Path:
        """Return the path of ``package://name/...``, ``file://...``, or of an absolute or relative path."""
        if "\0" in name:
            raise InputError("a file name contains a NUL character")
        scheme, separator, rest = name.partition("://")
        if not separator:
            return self.folder / name
        if scheme == "file":
            return self.folder / unquote(rest)
        if scheme not in ("package", "model"):
            raise InputError(f"'{name[:80]}' is not a local file; remote files are not loaded")
        package, _, inner = unquote(rest).partition("/")
        if package in self.packages:
            return self.packages[package] / inner
        # the package is one of the ancestors of the folder, or a sibling of an ancestor
        for ancestor in (self.folder, *self.folder.parents):
            for candidate in (ancestor / inner if ancestor.name == package else None, ancestor / package / inner):
                if candidate is not None and candidate.is_file():
                    return candidate
        raise InputError(f"'{name[:80]}' was not found: pass packages={{'{package}': folder}}")

    def mesh(self, name: str) -> TriangleMesh:
        path = check_readable_path(self.find(name))
        if path not in self._cache:
            self._cache[path] = load_mesh(path)
        return self._cache[path]
