"""A figure is a function that returns a picture and a list of claims; here they are found, drawn and collected."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livens.errors import InputError, IntegrationError, suggestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Claim:
    """A statement, the number that was measured for it with the limit it is held against, and whether it holds.

    `holds` is None for what depends on the machine, such as times: it is shown and not judged.
    """

    text: str
    measured: str
    holds: bool | None


#: What draws a figure.
Draw = Callable[[], "tuple[Figure, list[Claim]]"]


@dataclass(frozen=True)
class Entry:
    """A figure of a source before it is drawn. `note` says where ours and the published one differ, and why."""

    source: str
    number: str
    title: str
    draw: Draw
    note: str = ""
    quick: bool = False  # two seconds at most, its runs included


@dataclass(frozen=True)
class Source:
    """A work, and the modules that hold its figures."""

    name: str
    citation: str
    modules: tuple[str, ...]
    note: str = ""  # about all of its figures


SOURCES = {
    source.name: source
    for source in (
        Source(
            "S000",
            "Kinon, Betsch: Energy-consistent integration of mechanical systems based on Livens principle",
            ("s000.four_particles",),
            "The constraint enters (20) with the sign that (21b) has.",
        ),
        Source(
            "S001",
            "Kinon, Betsch, Schneider: The GGL variational principle for constrained mechanical systems, 2023",
            ("s001.top", "s001.linkage"),
            "Equations (41b) and (57b) are taken with the momentum at the end of the step, as it comes out of the "
            "variation (40b), and the dissipative force with the sign of (53), its matrix (80) being symmetric. "
            "The linkage has seven joints: P1, P2, P3 on the ground, P4, two in P5, and P6. The height of the top's "
            "centre of mass, called horizontal in 5.1, is vertical.",
        ),
        Source(
            "S002",
            "Symank: Structure-Preserving Numerical Solution of Multibody Systems in Energy Formulation, 2025",
            ("s002.springs", "s002.vanishing_mass", "s002.murua", "s002.pendulums", "s002.limits", "s002.times"),
            "(7.3) and (7.4) are taken with k2, as H has it; the power balance with the signs of thm. 4.2; the energy "
            "defect (6.15) with a minus, which belongs to the force -G^T lam; the rods of 7.3.3 with length 1. The "
            "tolerances of the document are for solving the equations of a step: ours are always solved to round-off.",
        ),
        Source(
            "S003",
            "Modin: Adaptive Geometric Numerical Integration of Mechanical Systems, 2009",
            (
                "s003.pendulum",
                "s003.rotor",
                "s003.walls",
                "s003.billiard",
                "s003.drift",
                "s003.nambu",
                "s003.stability",
                "s003.semi_explicit",
                "s003.bearing",
            ),
            "II.3 is figure 3 of paper II. Axes of the figures are not legible in the copy at hand, so horizons, where "
            "the text does not give them, are ours. Algorithm 3.2.1 is taken with xi at the end of the step in its "
            "last line, and starts with the density itself. The velocity in l_d of paper II is (q1 - q0)/eps. The "
            "scaling that gives equal steps in space (paper III, 13) is T^(-1/2). Of the bearings "
            "only dimensions of the same kind are known; spherical rollers are left out.",
        ),
        Source(
            "S004",
            "Kinon, Betsch: Conserving integration of multibody systems with singular and non-constant mass matrix "
            "including quaternion-based rigid body dynamics, 2024",
            ("s004.springs", "s004.rotation", "s004.top", "s004.ring"),
            "The top's moments about its tip are J1 = J2 = J0_1 + m l^2 and J3 = J0_3, the other way round than in "
            "(114); only then (118) gives the spin of 135.6 1/s.",
        ),
    )
}

_entries: dict[tuple[str, str], Entry] = {}


def figure(
    source: str, number: int | str, title: str, *, note: str = "", quick: bool = False
) -> Callable[[Draw], Draw]:
    """Decorator that makes a function the figure of a source."""

    def register(draw: Draw) -> Draw:
        _entries[source, str(number)] = Entry(source, str(number), title, draw, note, quick)
        return draw

    return register


def source_of(name: str) -> Source:
    """A source by its name, in capitals or not."""
    found = SOURCES.get(str(name).upper())
    if found is None:
        raise InputError(f"unknown source '{name}'{suggestion(str(name).upper(), SOURCES)}")
    return found


_PAPERS = ("I", "II", "III", "IV", "V")


def _place(number: str) -> list[tuple[int, int, str]]:
    """The order of numbers: 2, 10; 2.9, 2.10; those of papers, II.3, after those of chapters; words last."""
    return [
        (0, int(part), "") if part.isdigit() else (1, _PAPERS.index(part), "") if part in _PAPERS else (2, 0, part)
        for part in number.split(".")
    ]


def figures(source: str, only: str | Sequence[str] | None = None) -> list[Entry]:
    """The figures of a source in the order of their numbers: all, or those named (``"7"``, ``"fig7,8"``)."""
    found = source_of(source)
    for module in found.modules:
        importlib.import_module(f"livens.reproduce.{module}")
    known = {entry.number: entry for entry in _entries.values() if entry.source == found.name}
    known = dict(sorted(known.items(), key=lambda item: _place(item[0])))
    if only is None:
        return list(known.values())
    chosen, in_any_case = [], {number.lower(): entry for number, entry in known.items()}
    for word in only.split(",") if isinstance(only, str) else only:
        number = re.sub(r"^fig(ure)?[\s.-]*", "", word.strip().lower())
        if number not in in_any_case:
            raise InputError(f"{found.name} has no figure '{word.strip()}' with data{suggestion(number, known)}")
        chosen.append(in_any_case[number])
    return chosen


@dataclass(frozen=True)
class Drawn:
    """A figure that was drawn: its files (none if a run failed) and its claims."""

    entry: Entry
    files: tuple[str, ...]
    claims: tuple[Claim, ...]

    @property
    def holds(self) -> bool:
        return all(claim.holds is not False for claim in self.claims)


@dataclass
class Report:
    """Everything that came out for one source."""

    source: Source
    folder: Path
    drawn: list[Drawn] = field(default_factory=list)

    @property
    def claims(self) -> list[Claim]:
        return [claim for drawn in self.drawn for claim in drawn.claims]

    @property
    def holds(self) -> bool:
        """Whether every claim does."""
        return all(drawn.holds for drawn in self.drawn)

    def as_object(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "source": self.source.name,
            "citation": self.source.citation,
            "folder": str(self.folder),
            "holds": self.holds,
            "figures": [
                {
                    "figure": drawn.entry.number,
                    "title": drawn.entry.title,
                    "note": drawn.entry.note,
                    "files": list(drawn.files),
                    "claims": [dict(vars(claim)) for claim in drawn.claims],
                }
                for drawn in self.drawn
            ],
        }


def reproduce(
    source: str, out: str | Path | None = None, only: str | Sequence[str] | None = None, *, progress: bool | None = None
) -> Report:
    """Draw the figures of a source, measure its claims, and write both to a folder with a report.

    :param source: S000, S001, S002 or S004.
    :param out: the folder, made if need be; ``reproduce-S000`` and so on if not given.
    :param only: numbers of figures, as in ``"7"`` or ``"7,8"``; all if not given.
    :param progress: show which figure is being made; by default on a terminal.

    The folder gets every figure as png and pdf, ``report.md`` and ``report.html``. A figure whose run fails is left
    out, and counts as a claim that does not hold.
    """
    chosen, found = figures(source, only), source_of(source)
    folder = Path(f"reproduce-{found.name}" if out is None else out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder '{folder}': {error.strerror}") from None
    from livens.reproduce.report import write

    report = Report(found, folder)
    with _progress(found.name, len(chosen), progress) as tell:
        for entry in chosen:
            tell(entry)
            report.drawn.append(_drawn(entry, folder))
    write(report)
    return report


def reproduce_all(out: str | Path | None = None, *, progress: bool | None = None) -> list[Report]:
    """Every source, with all figures in one folder (``reproduce`` if not given) and all claims in one report."""
    from livens.reproduce.report import write

    folder = Path("reproduce" if out is None else out)
    reports = [reproduce(name, folder, progress=progress) for name in SOURCES]
    write(*reports)
    return reports


def _drawn(entry: Entry, folder: Path) -> Drawn:
    from livens.plot.style import save

    try:
        picture, claims = entry.draw()
    except IntegrationError as error:
        return Drawn(entry, (), (Claim("The runs for this figure can be finished.", str(error), False),))
    stem = f"{entry.source}-figure-{entry.number.zfill(2)}"
    files = [save(picture, folder / f"{stem}.{suffix}").name for suffix in ("png", "pdf")]
    return Drawn(entry, tuple(files), tuple(claims))


@contextmanager
def _progress(title: str, total: int, show: bool | None) -> Iterator[Callable[[Entry], None]]:
    """A bar on stderr that says which figure is being made."""
    from livens.run.progress import somebody_looks

    if not (somebody_looks() if show is None else show):
        yield lambda entry: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("figures")
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        started = 0

        def tell(entry: Entry) -> None:
            nonlocal started
            bar.update(task, completed=started, description=f"{title} figure {entry.number}")
            started += 1

        yield tell
