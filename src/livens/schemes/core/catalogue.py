"""Catalogue of the schemes by group and family: the table of ``livens list`` and of the scheme catalogue.

``python -m livens.schemes.core.catalogue`` updates ``docs/reference/schemes.md`` in the current folder.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from livens.schemes.core import registry
from livens.schemes.core.name_template import name_template
from livens.schemes.core.scheme import Traits

#: Groups in the order of the listings; user-defined groups come last.
GROUPS = (
    "Energy-momentum and midpoint schemes",
    "Symplectic schemes for systems with constraints",
    "Runge-Kutta methods",
    "Splitting and variational schemes, without constraints",
    "Compositions of a symmetric scheme",
    "Schemes with adaptive steps, by a scaling function",
    "Taylor series",
    "Nambu systems",
    "Poisson and Lie-Poisson systems",
    "Methods for comparison",
)
BEGIN = "<!-- schemes: written by python -m livens.schemes.core.catalogue -->"
END = "<!-- end of schemes -->"
_QUANTITY_NAMES = {
    "constraint": "constraints",
    "velocity_constraint": "hidden constraints",
    "generalized_energy": "generalised energy",
    "hamiltonian": "Hamiltonian",
}


@dataclass(frozen=True)
class Row:
    """Table row of a scheme or of a family, as text."""

    name: str  # name, or name template of a family
    order: str
    symplectic: str
    symmetric: str
    step_type: str  # "explicit" or "implicit"
    conserves: str
    formulations: str
    requirements: str
    group: str = dataclasses.field(repr=False)
    members: tuple[Traits, ...] = dataclasses.field(repr=False, compare=False)


def group_names(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of schemes by group, in the order of the listings."""
    by_group: dict[str, list[str]] = {}
    for name in names:
        by_group.setdefault(registry.get(name).traits.group, []).append(name)
    rank = {group: i for i, group in enumerate(GROUPS)}
    return dict(sorted(by_group.items(), key=lambda entry: (rank.get(entry[0], len(rank)), entry[0])))


def all_rows() -> list[Row]:
    """Return one row for every scheme and every family, ordered by group and, within a group, by preference."""
    members_by_name: dict[str, list[Traits]] = {}
    for scheme in registry.all():
        traits = scheme.traits
        members_by_name.setdefault(traits.family or traits.name, []).append(traits)
    table = [make_row(name, members) for name, members in members_by_name.items()]
    groups, preference = ({entry: i for i, entry in enumerate(ordering)} for ordering in (GROUPS, registry.PREFERRED))

    def sort_key(row: Row) -> tuple[int, str, int, str]:
        preference_rank = min(preference.get(member.name, len(preference)) for member in row.members)
        return groups.get(row.group, len(groups)), row.group, preference_rank, row.name

    return sorted(table, key=sort_key)


def make_row(name: str, members: Sequence[Traits]) -> Row:
    """Return the table row of a scheme or of the members of a family."""
    representative = members[0]
    is_composition = "scheme" in name_template(name).fields  # composition: most traits are those of the base scheme
    common = [
        quantity for quantity in representative.conserves if all(quantity in member.conserves for member in members)
    ]
    return Row(
        name,
        order=_order(name, members),
        symplectic="as <scheme>" if is_composition else _members_where(name, members, lambda t: t.symplectic),
        symmetric=_members_where(name, members, lambda t: t.symmetric),
        step_type="as <scheme>"
        if is_composition
        else _members_where(name, members, lambda t: not t.implicit, "explicit", "implicit"),
        conserves="as <scheme>"
        if is_composition
        else ", ".join(_QUANTITY_NAMES.get(quantity, quantity.replace("_", " ")) for quantity in common),
        formulations="as <scheme>" if is_composition else ", ".join(representative.formulations),
        requirements="a symmetric scheme" if is_composition else "; ".join(_requirement_texts(representative)),
        group=representative.group,
        members=tuple(members),
    )


def markdown() -> str:
    """Return the table of the scheme catalogue in Markdown; rows with identical cells are merged."""
    columns = ("scheme", "order", "symplectic", "symmetric", "step", "conserves exactly", "takes", "needs")
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    merged: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for row in all_rows():
        cells = (
            row.order,
            row.symplectic,
            row.symmetric,
            row.step_type,
            row.conserves,
            row.formulations,
            row.requirements,
        )
        merged.setdefault(row.group, {}).setdefault(cells, []).append(f"`{row.name}`")
    for group, rows_by_cells in merged.items():
        lines.append(f"| **{group}** {'| ' * (len(columns) - 1)}|")
        for row_cells, names in rows_by_cells.items():
            escaped = [re.sub("(<.+?>)", r"`\1`", cell) for cell in row_cells]
            lines.append(f"| {' | '.join([', '.join(names), *escaped])} |")
    return "\n".join(lines)


def replace_table(text: str) -> str:
    """Return the text with the table between the two marks replaced by the current table."""
    before, _, remainder = text.partition(BEGIN)
    _, _, after = remainder.partition(END)
    return f"{before}{BEGIN}\n\n{markdown()}\n\n{END}{after}"


def _order(name: str, members: Sequence[Traits]) -> str:
    """Return the order as a function of the field s where possible, else the list of orders.

    >>> next(row.order for row in all_rows() if row.name == "radau-iia-<s>")
    '2s - 1'
    """
    family = name_template(name)
    if "order" in family.fields:
        return "<order>"
    orders = [member.order for member in members]
    if family.fields == ("s",) and len(members) > 1:
        stages = [arguments[0] for member in members if (arguments := family.parse(member.name))]
        factor, remainder = divmod(orders[-1] - orders[0], stages[-1] - stages[0])
        offset = orders[0] - factor * stages[0]
        if not remainder and [factor * s + offset for s in stages] == orders:
            return f"{factor}s{f' {offset:+d}' if offset else ''}".replace(" -", " - ").replace(" +", " + ")
    return ", ".join(str(order) for order in sorted(set(orders)))


def _members_where(
    name: str, members: Sequence[Traits], holds: Callable[[Traits], Any], yes: str = "yes", no: str = "no"
) -> str:
    """Return "yes" or "no", or the members of a family for which a predicate holds."""
    matching = [member for member in members if holds(member)]
    if len(matching) in (0, len(members)):
        return yes if matching else no
    family = name_template(name)
    values = [",".join(family.match(member.name) or (member.name,)) for member in matching]
    prefix = "s = " if family.fields == ("s",) else ""
    return f"{yes} for {prefix}{' and '.join(values)}"


def _requirement_texts(traits: Traits) -> list[str]:
    """Return the requirements of a scheme, without the explanations in brackets."""
    descriptions = [requirement.description.partition(" (")[0] for requirement in traits.requires]
    return descriptions + (["a scaling function"] if traits.fictive else [])


if __name__ == "__main__":
    page = Path("docs/reference/schemes.md")
    page.write_text(replace_table(page.read_text(encoding="utf-8")), encoding="utf-8")
