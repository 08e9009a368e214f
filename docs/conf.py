"""Sphinx configuration of the documentation site: ``make docs`` builds it in ``out/docs``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

from api_reference import class_members, remove_stale_pages  # noqa: E402

import livens  # noqa: E402

for layer in {*livens.ACCESSORS.values(), *livens.MULTIBODY_ACCESSORS.values()}:
    importlib.import_module(f"livens.{layer}")  # methods of results and mechanisms that are attached on first use

remove_stale_pages()

project, author, release = "livens", "The livens developers", livens.__version__
version = release
copyright = "The livens developers"
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "offline_math",
    "sphinxcontrib.bibtex",
    "gallery",
    "catalogue",
    "command_line",
    "notebooks",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "unsrt"
bibtex_reference_style = "author_year"

# Markdown pages and executed notebooks
myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(DOCS.parent / "out" / ".jupyter_cache")
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_execution_in_temp = True

# API reference from numpydoc docstrings
autosummary_generate = True
autosummary_context = {"class_members": class_members()}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
templates_path = ["_templates"]
nitpicky = True

# HTML
html_theme = "pydata_sphinx_theme"
html_title = "livens"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "navigation_depth": 2,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "collapse_navigation": True,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "gallery/index": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
