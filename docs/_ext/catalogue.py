"""Sphinx extension: scheme catalogue with filters, and a page per family, written from the traits of the schemes."""

from __future__ import annotations

import html
import re
from typing import Any

from gallery import DOCS, capitalised, write_if_changed

FOLDER = DOCS / "reference" / "schemes"
#: Filters of the catalogue: key, label.
FILTERS = {
    "constraints": "model with constraints",
    "hamiltonian": "Hamiltonian model",
    "ode": "first-order ODE or DAE",
    "structured": "Poisson, Nambu or port-Hamiltonian model",
    "energy": "conserves energy",
    "symplectic": "symplectic",
    "explicit": "explicit",
    "high": "order above 2",
    "adaptive": "adaptive steps",
}
_ENERGIES = {"generalized_energy", "total_energy", "hamiltonian"}
_FORMULATIONS = {
    "elements": "mechanical systems",
    "phase space": "Hamiltonian systems",
    "descriptor": "first-order ODEs and DAEs",
    "nambu": "Nambu systems",
    "port-hamiltonian": "port-Hamiltonian systems",
    "spins": "spin systems",
    "isospectral": "isospectral flows",
    "discrete Lagrangian": "discrete Lagrangians",
}

#: Formulations of models with a structure matrix or a bracket.
_STRUCTURED = {"nambu", "port-hamiltonian", "spins", "isospectral"}


def slug(name: str) -> str:
    """Return the file name of a family."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def properties(row: Any) -> set[str]:
    """Return the filter keys that a scheme or family satisfies."""
    members = row.members
    traits = members[0]
    found = {
        "constraints": "elements" in traits.formulations and "constraint" in str(traits.conserves),
        "hamiltonian": "phase space" in traits.formulations,
        "ode": "descriptor" in traits.formulations,
        "structured": bool(_STRUCTURED & set(traits.formulations)),
        "energy": bool(_ENERGIES & set(traits.conserves)),
        "symplectic": any(member.symplectic for member in members),
        "explicit": any(not member.implicit for member in members),
        "high": any(member.order > 2 for member in members),
        "adaptive": traits.fictive or traits.error_order > 0 or traits.name.startswith(("taylor", "radau")),
    }
    return {key for key, holds in found.items() if holds}


def index_page(rows: list[Any]) -> str:
    """Return the page of the catalogue: filters and one table."""
    boxes = "".join(
        f'<label><input type="checkbox" data-filter="{key}"> {label}</label>' for key, label in FILTERS.items()
    )
    body, group = [], ""
    for row in rows:
        if row.group != group:
            group = row.group
            body.append(f'<tr class="scheme-group"><th colspan="5">{html.escape(group)}</th></tr>')
        works_with = row.formulations
        for word, text in _FORMULATIONS.items():
            works_with = re.sub(rf"\b{word}\b", text, works_with)
        cells = (row.order, "yes" if "symplectic" in properties(row) else "no", row.step_type, works_with)
        link = f'<a href="{slug(row.name)}.html"><code>{html.escape(row.name)}</code></a>'
        body.append(
            f'<tr data-properties="{" ".join(sorted(properties(row)))}"><td>{link}</td>'
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            + "</tr>"
        )
    head = "".join(f"<th>{text}</th>" for text in ("scheme", "order", "symplectic", "step", "works with"))
    table = (
        f'<div class="scheme-filter">{boxes}</div>\n<table class="docutils scheme-table"><thead><tr>{head}</tr></thead>'
        f'<tbody>{"".join(body)}</tbody></table>\n<script defer src="../../_static/catalogue.js"></script>'
    )
    pages = "\n".join(slug(row.name) for row in rows)
    return (
        "# Scheme catalogue\n\n"
        f"livens has {len(rows)} schemes and families of schemes. Tick what you have and what you want. "
        "Every name leads to a page with properties, requirements and advice. If you are new, read "
        "[Choose a scheme](../../howto/choose-a-scheme.md) first.\n\n"
        f"```{{raw}} html\n{table}\n```\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    )


def family_page(row: Any) -> str:
    """Return the page of a scheme or a family."""
    traits = row.members[0]
    names = ", ".join(f"`{member.name}`" for member in row.members)
    aliases = ", ".join(f"`{alias}`" for alias in traits.aliases)
    sources = "; ".join(dict.fromkeys(member.source for member in row.members if not member.source.startswith("docs/")))
    facts = {
        "order": code_fields(row.order),
        "symplectic": code_fields(row.symplectic),
        "time-symmetric": code_fields(row.symmetric),
        "step": code_fields(row.step_type),
        "conserves exactly": code_fields(row.conserves) or "nothing",
        "works with": code_fields(row.formulations),
        "requires": code_fields(row.requirements) or "nothing else",
        "other names": aliases,
        "members, for example": names if len(row.members) > 1 or traits.name != row.name else "",
        "source": sources,
    }
    table = "\n".join(f"| {label} | {text} |" for label, text in facts.items() if text)
    advice = ""
    if traits.when_to_use:
        advice = (
            f":::{{admonition}} When to use\n:class: tip\n{traits.when_to_use}\n:::\n\n"
            f":::{{admonition}} When to avoid\n:class: warning\n{traits.when_to_avoid}\n:::\n\n"
        )
    scheme = traits.name
    return (
        f"# `{row.name}`\n\n{capitalised(traits.summary)}.\n\n{advice}| property | |\n|---|---|\n{table}\n\n"
        f"```python\nimport livens as lv\n\nscheme = lv.schemes.get({scheme!r})\nprint(scheme.traits.order)\n```\n\n"
        f"Pass the name to a run: `lv.simulate(model, ..., scheme={scheme!r})`. `livens show {scheme}` "
        "prints this page in a terminal. "
        "Known limits of the schemes are on [a page of their own](../../theory/known-limits.md).\n"
    )


def code_fields(text: str) -> str:
    """Return a text with the fields of a name template in code style."""
    return re.sub(r"(<.+?>)", r"`\1`", text)


def setup(app: Any) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    from livens.schemes.core.catalogue import all_rows

    rows = all_rows()
    write_if_changed(FOLDER / "index.md", index_page(rows))
    for row in rows:
        write_if_changed(FOLDER / f"{slug(row.name)}.md", family_page(row))
    return {"parallel_read_safe": True}
