"""Fingerprint of the code generators, part of every key of the machine-code cache."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

#: Folders of the package whose sources determine generated code: emitters, kernels, workspace layouts and the
#: constants they contain, graph transformations, and the index tables of element batches.
_SOURCE_FOLDERS = ("engine", "expressions/graph", "schemes/discretization")


def hash_sources(package: Path) -> str:
    """Return the hash of the sources below the package folder that determine generated code."""
    digest = hashlib.sha256()
    for file in sorted(file for folder in _SOURCE_FOLDERS for file in (package / folder).rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@functools.cache
def codegen_fingerprint() -> str:
    """Return the fingerprint of the code generators: another version of their sources may generate other code."""
    return hash_sources(Path(__file__).parents[2])
