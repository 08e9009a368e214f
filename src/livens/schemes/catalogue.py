"""Catalogue of the schemes by group and family: the table of ``livens list`` and of the README.

``python -m livens.schemes.core.catalogue`` updates the table of the README in the current folder.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from livens.schemes import registry
from livens.schemes.base import Traits
from livens.schemes.patterns import pattern

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
    "Methods for comparison",
)
BEGIN = "<!-- schemes: written by python -m livens.schemes.catalogue -->"
END = "<!-- end of schemes -->"
_WORDS = {
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
    solved: str  # "explicit" or "implicit"
    conserves: str
    forms: str
    needs: str
    group: str = dataclasses.field(repr=False)
    members: tuple[Traits, ...] = dataclasses.field(repr=False, compare=False)


def grouped(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of schemes by group, in the order of the listings."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(registry.get(name).traits.group, []).append(name)
    place = {group: i for i, group in enumerate(GROUPS)}
    return dict(sorted(found.items(), key=lambda entry: (place.get(entry[0], len(place)), entry[0])))


def rows() -> list[Row]:
    """Return one row for every scheme and every family, ordered by group and, within a group, by preference."""
    together: dict[str, list[Traits]] = {}
    for scheme in registry.all():
        traits = scheme.traits
        together.setdefault(traits.family or traits.name, []).append(traits)
    found = [row(name, members) for name, members in together.items()]
    groups, usual = ({word: i for i, word in enumerate(words)} for words in (GROUPS, registry.USUAL))

    def place(row: Row) -> tuple[int, str, int, str]:
        use = min(usual.get(member.name, len(usual)) for member in row.members)
        return groups.get(row.group, len(groups)), row.group, use, row.name

    return sorted(found, key=place)


def row(name: str, members: Sequence[Traits]) -> Row:
    """Return the table row of a scheme or of the members of a family."""
    first = members[0]
    made_of = "scheme" in pattern(name).parts  # composition: most traits are those of the base scheme
    common = [what for what in first.conserves if all(what in member.conserves for member in members)]
    return Row(
        name,
        order=_order(name, members),
        symplectic="as <scheme>" if made_of else _where(name, members, lambda t: t.symplectic),
        symmetric=_where(name, members, lambda t: t.symmetric),
        solved="as <scheme>" if made_of else _where(name, members, lambda t: not t.implicit, "explicit", "implicit"),
        conserves="as <scheme>" if made_of else ", ".join(_WORDS.get(what, what.replace("_", " ")) for what in common),
        forms="as <scheme>" if made_of else ", ".join(first.forms),
        needs="a symmetric scheme" if made_of else "; ".join(_needs(first)),
        group=first.group,
        members=tuple(members),
    )


def markdown() -> str:
    """Return the README table in Markdown; rows with identical cells are merged."""
    columns = ("scheme", "order", "symplectic", "symmetric", "step", "conserves exactly", "takes", "needs")
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    together: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for row in rows():
        cells = (row.order, row.symplectic, row.symmetric, row.solved, row.conserves, row.forms, row.needs)
        together.setdefault(row.group, {}).setdefault(cells, []).append(f"`{row.name}`")
    for group, same in together.items():
        lines.append(f"| **{group}** {'| ' * (len(columns) - 1)}|")
        for words, names in same.items():
            escaped = [re.sub("(<.+?>)", r"`\1`", word) for word in words]
            lines.append(f"| {' | '.join([', '.join(names), *escaped])} |")
    return "\n".join(lines)


def refreshed(text: str) -> str:
    """Return the text with the table between the two marks replaced by the current table."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{markdown()}\n\n{END}{after}"


def _order(name: str, members: Sequence[Traits]) -> str:
    """Return the order as a function of the field s where possible, else the list of orders.

    >>> next(row.order for row in rows() if row.name == "radau-iia-<s>")
    '2s - 1'
    """
    family = pattern(name)
    if "order" in family.parts:
        return "<order>"
    orders = [member.order for member in members]
    if family.parts == ("s",) and len(members) > 1:
        stages = [arguments[0] for member in members if (arguments := family.arguments(member.name))]
        slope, rest = divmod(orders[-1] - orders[0], stages[-1] - stages[0])
        offset = orders[0] - slope * stages[0]
        if not rest and [slope * s + offset for s in stages] == orders:
            return f"{slope}s{f' {offset:+d}' if offset else ''}".replace(" -", " - ").replace(" +", " + ")
    return ", ".join(str(order) for order in sorted(set(orders)))


def _where(
    name: str, members: Sequence[Traits], holds: Callable[[Traits], Any], yes: str = "yes", no: str = "no"
) -> str:
    """Return "yes" or "no", or the members of a family for which a predicate holds."""
    those = [member for member in members if holds(member)]
    if len(those) in (0, len(members)):
        return yes if those else no
    family = pattern(name)
    values = [",".join(family.texts(member.name) or (member.name,)) for member in those]
    which = "s = " if family.parts == ("s",) else ""
    return f"{yes} for {which}{' and '.join(values)}"


def _needs(traits: Traits) -> list[str]:
    """Return the requirements of a scheme, without the explanations in brackets."""
    needs = [requirement.words.partition(" (")[0] for requirement in traits.requires]
    return needs + (["a scaling function"] if traits.fictive else [])


if __name__ == "__main__":
    readme = Path("README.md")
    readme.write_text(refreshed(readme.read_text()))
