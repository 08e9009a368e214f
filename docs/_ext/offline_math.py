"""Sphinx extension: equations without a network, by the MathJax files of the package sphinx-mathjax-offline."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx.util.fileutil import copy_asset

#: Files and folders that pages with TeX input and HTML output load.
_NEEDED = ("tex-chtml.js", "output/chtml/fonts", "input/tex/extensions")


def copy_mathjax(app: Any, exception: Exception | None) -> None:
    """Copy the needed files into the static files of the finished site."""
    spec = find_spec("sphinx-mathjax-offline")
    if exception is not None or app.builder.format != "html" or spec is None or spec.origin is None:
        return
    source = Path(spec.origin).parent / "static" / "mathjax"
    for name in _NEEDED:
        target = Path(app.outdir) / "_static" / "mathjax" / name
        copy_asset(source / name, target.parent if target.suffix else target)


def setup(app: Any) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
