"""Make the pictures of the documentation in the style of livens.plot: ``python docs/figures/make.py [NAME ...]``.

A picture is a function with the name of its file, in a module beside this one: `plots`, `mechanisms`, `beams`,
`measured` or `pages`. Pictures of the example of a page run the code of the page (`names_of`), so that both agree.
Pictures of the viewer need the extra `lab` and Chromium.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import beams
import measured
import mechanisms
import pages
import plots
from registry import DOCS, PICTURES

MODULES = (beams, measured, mechanisms, pages, plots)


def main() -> None:
    """Write the pictures with the given names, or all."""
    folder = Path.cwd()
    for name in sys.argv[1:] or PICTURES:
        with tempfile.TemporaryDirectory() as work:
            os.chdir(work)  # pages write files
            PICTURES[name](DOCS / "pictures" / f"{name}.png")
            os.chdir(folder)
        print(name)


if __name__ == "__main__":
    main()
