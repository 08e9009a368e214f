"""Where the meshes of a robot are: beside its file, in packages, and each of them read once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from livens.errors import InputError
from livens.models.triangles import Triangles, read


class Files:
    """Finds what a file names, seen from its folder; `packages` are names of packages with their folders."""

    def __init__(self, folder: Path, packages: Mapping[str, Path] | None = None) -> None:
        self.folder, self.packages = folder, dict(packages or {})
        self._read: dict[Path, Triangles] = {}

    def find(self, name: str) -> Path:
        """A path as it is written: ``package://name/...``, ``file://...``, absolute, or seen from the folder."""
        if "\0" in name:
            raise InputError("a name of a file has a character that no file has")
        kind, mark, rest = name.partition("://")
        if not mark:
            return self.folder / name
        if kind == "file":
            return self.folder / unquote(rest)
        if kind not in ("package", "model"):
            raise InputError(f"'{name[:80]}' is not on this machine, and nothing is fetched")
        package, _, inner = unquote(rest).partition("/")
        if package in self.packages:
            return self.packages[package] / inner
        # the folder of the package is one of those above, or beside one of them
        for above in (self.folder, *self.folder.parents):
            for place in (above / inner if above.name == package else None, above / package / inner):
                if place is not None and place.is_file():
                    return place
        raise InputError(f"'{name[:80]}' is not found: say where the package is with packages={{'{package}': folder}}")

    def mesh(self, name: str) -> Triangles:
        path = self.find(name)
        if path not in self._read:
            self._read[path] = read(path)
        return self._read[path]
