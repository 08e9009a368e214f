"""Registry and execution of published figures: a figure is a function that returns a plot and a list of claims."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from livens.errors import InputError, IntegrationError, suggestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Claim:
    """Statement of a paper with the measured number, its limit, and whether the statement holds.

    Parameters
    ----------
    text : str
        The statement.
    measured : str
        Measured value and limit, for the report.
    holds : bool or None
        Whether the measured value is within the limit. None for machine-dependent values, such as times, which are
        reported without judgement.
    """

    text: str
    measured: str
    holds: bool | None


#: Function that draws a figure and measures its claims.
DrawFunction = Callable[[], "tuple[Figure, list[Claim]]"]


@dataclass(frozen=True)
class FigureEntry:
    """Registered figure of a paper with its drawing function.

    Parameters
    ----------
    source : str
        Name of the source, such as ``"modin-2009"``.
    number : str
        Number of the figure, such as ``"7"`` or ``"II.3"``.
    title : str
        Title of the figure.
    draw : callable
        Function that returns the Matplotlib figure and the list of claims.
    note : str, default ""
        Differences from the published figure and their reasons.
    quick : bool, default False
        True if drawing takes at most 2 s, including its runs.
    """

    source: str
    number: str
    title: str
    draw: DrawFunction
    note: str = ""
    quick: bool = False


@dataclass(frozen=True)
class Source:
    """Paper with the modules that contain its figures.

    Parameters
    ----------
    name : str
        Short name, such as ``"modin-2009"``.
    citation : str
        Authors, title and year.
    modules : tuple of str
        Modules of its figures, relative to ``livens.reproduce``.
    note : str, default ""
        Remarks that hold for all figures of the paper.
    """

    name: str
    citation: str
    modules: tuple[str, ...]
    note: str = ""


SOURCES = {
    source.name: source
    for source in (
        Source(
            "kinon-betsch-2023",
            "Kinon, Betsch: Energy-consistent integration of mechanical systems based on Livens principle",
            ("kinon_betsch_2023.four_particles",),
            "The constraint enters (20) with the sign of (21b). The correction of the discrete gradient (26) is "
            "restricted to the coordinates that a function depends on; livens-em:gonzalez-full is (26) literally. "
            "docs/theory/papers/kinon-betsch-2023.md lists all misprints.",
        ),
        Source(
            "kinon-betsch-schneider-2023",
            "Kinon, Betsch, Schneider: The GGL variational principle for constrained mechanical systems, 2023",
            ("kinon_betsch_schneider_2023.top", "kinon_betsch_schneider_2023.linkage"),
            "Equations (41b) and (57b) use the momentum at the end of the step, as it follows from the variation "
            "(40b). The dissipative force has the sign of (53), with the symmetric matrix (80). The linkage has seven "
            "joints: P1, P2, P3 on the ground, P4, two in P5, and P6. The height of the centre of mass of the top, "
            "called horizontal in 5.1, is vertical. docs/theory/papers/kinon-betsch-schneider-2023.md lists all "
            "misprints.",
        ),
        Source(
            "symank-2025",
            "Symank: Structure-Preserving Numerical Solution of Multibody Systems in Energy Formulation, 2025",
            (
                "symank_2025.springs",
                "symank_2025.vanishing_mass",
                "symank_2025.murua",
                "symank_2025.pendulums",
                "symank_2025.limits",
                "symank_2025.times",
            ),
            "(7.3) and (7.4) use k2, as in H; the power balance has the signs of thm. 4.2; the energy defect (6.15) "
            "has a minus sign, which follows from the force -G^T lam; the rods of 7.3.3 have length 1. The tolerances "
            "of the document are those of the residual; livens always solves the equations to round-off, except in "
            "livens.study.truncated_newton. docs/theory/papers/symank-2025.md lists all misprints.",
        ),
        Source(
            "modin-2009",
            "Modin: Adaptive Geometric Numerical Integration of Mechanical Systems, 2009",
            (
                "modin_2009.pendulum",
                "modin_2009.rotor",
                "modin_2009.walls",
                "modin_2009.billiard",
                "modin_2009.drift",
                "modin_2009.nambu",
                "modin_2009.stability",
                "modin_2009.semi_explicit",
                "modin_2009.bearing",
            ),
            "II.3 is figure 3 of paper II. The axes of the figures are not legible in the available copy; horizons "
            "that the text does not give are chosen here. Algorithm 3.2.1 uses xi at the end of the step in its last "
            "line, and starts with the density itself: the first step is eps/Q(z0). Scaling functions of paper II "
            "depend on positions and momenta, not on the velocity in l_d, which is printed with the opposite sign. The "
            "scaling for equal steps in space (paper III, 13) is T^(-1/2). The dimensions of the bearings are not "
            "given; those of a similar bearing are used. docs/theory/papers/modin-2009.md lists all misprints.",
        ),
        Source(
            "kinon-betsch-2024",
            "Kinon, Betsch: Conserving integration of multibody systems with singular and non-constant mass matrix "
            "including quaternion-based rigid body dynamics, 2024",
            (
                "kinon_betsch_2024.springs",
                "kinon_betsch_2024.rotation",
                "kinon_betsch_2024.top",
                "kinon_betsch_2024.ring",
            ),
            "The moments of inertia of the top about its tip are J1 = J2 = J0_1 + m l^2 and J3 = J0_3, interchanged "
            "in (114); only then does (118) give the spin of 135.6 1/s. The "
            "discrete gradient (130) is restricted as in Kinon and Betsch 2023. "
            "docs/theory/papers/kinon-betsch-2024.md lists all misprints.",
        ),
    )
}

_entries: dict[tuple[str, str], FigureEntry] = {}


def figure(
    source: str, number: int | str, title: str, *, note: str = "", quick: bool = False
) -> Callable[[DrawFunction], DrawFunction]:
    """Return a decorator that registers a function as a figure of a source."""

    def register(draw: DrawFunction) -> DrawFunction:
        _entries[source, str(number)] = FigureEntry(source, str(number), title, draw, note, quick)
        return draw

    return register


def source_of(name: str) -> Source:
    """Return a source by its name, case-insensitive."""
    source = SOURCES.get(str(name).lower())
    if source is None:
        raise InputError(f"unknown source '{name}'{suggestion(str(name).lower(), SOURCES)}")
    return source


_PAPERS = ("I", "II", "III", "IV", "V")


def _sort_key(number: str) -> list[tuple[int, int, str]]:
    """Return the sort key of a figure number: 2 < 10; 2.9 < 2.10; chapters before papers (II.3); text last."""
    return [
        (0, int(part), "") if part.isdigit() else (1, _PAPERS.index(part), "") if part in _PAPERS else (2, 0, part)
        for part in number.split(".")
    ]


def figures(source: str, only: str | Sequence[str] | None = None) -> list[FigureEntry]:
    """Return the registered figures of a source, sorted by number.

    Parameters
    ----------
    source : str
        Name of the source, such as ``"modin-2009"``, case-insensitive.
    only : str or sequence of str, optional
        Numbers of the selected figures, such as ``"7"`` or ``"fig7,8"``. Default: all figures.

    Returns
    -------
    list of FigureEntry
        The selected figures.

    Raises
    ------
    InputError
        If the source or a figure does not exist.
    """
    paper = source_of(source)
    for module in paper.modules:
        importlib.import_module(f"livens.reproduce.{module}")
    known = {entry.number: entry for entry in _entries.values() if entry.source == paper.name}
    known = dict(sorted(known.items(), key=lambda item: _sort_key(item[0])))
    if only is None:
        return list(known.values())
    chosen, in_any_case = [], {number.lower(): entry for number, entry in known.items()}
    for requested in only.split(",") if isinstance(only, str) else only:
        number = re.sub(r"^fig(ure)?[\s.-]*", "", requested.strip().lower())
        if number not in in_any_case:
            raise InputError(f"{paper.name} has no figure '{requested.strip()}' with data{suggestion(number, known)}")
        chosen.append(in_any_case[number])
    return chosen


@dataclass(frozen=True)
class FigureResult:
    """Figure with its files and measured claims.

    Parameters
    ----------
    entry : FigureEntry
        The registered figure.
    files : tuple of str
        Names of the written files; empty if a run failed.
    claims : tuple of Claim
        Measured claims.
    """

    entry: FigureEntry
    files: tuple[str, ...]
    claims: tuple[Claim, ...]

    @property
    def holds(self) -> bool:
        """True if no claim of the figure is violated.

        Returns
        -------
        bool
            False if the `holds` of a claim is False.
        """
        return all(claim.holds is not False for claim in self.claims)


@dataclass
class Report:
    """Result of the reproduction of one source.

    Parameters
    ----------
    source : Source
        The paper.
    folder : Path
        Folder of the figures and of the report.
    results : list of FigureResult, optional
        The drawn figures.
    """

    source: Source
    folder: Path
    results: list[FigureResult] = field(default_factory=list)

    @property
    def claims(self) -> list[Claim]:
        """Claims of all figures.

        Returns
        -------
        list of Claim
            The claims in the order of the figures.
        """
        return [claim for result in self.results for claim in result.claims]

    @property
    def holds(self) -> bool:
        """True if no claim of any figure is violated.

        Returns
        -------
        bool
            False if the `holds` of a claim is False.
        """
        return all(result.holds for result in self.results)

    def as_object(self) -> dict[str, object]:
        """Return the report as plain data for JSON.

        Returns
        -------
        dict
            Source, citation, folder, overall status and figures with their claims.
        """
        return {
            "source": self.source.name,
            "citation": self.source.citation,
            "folder": str(self.folder),
            "holds": self.holds,
            "figures": [
                {
                    "figure": result.entry.number,
                    "title": result.entry.title,
                    "note": result.entry.note,
                    "files": list(result.files),
                    "claims": [dict(vars(claim)) for claim in result.claims],
                }
                for result in self.results
            ],
        }


def reproduce(
    source: str, out: str | Path | None = None, only: str | Sequence[str] | None = None, *, progress: bool | None = None
) -> Report:
    """Draw the figures of a source, measure its claims, and write both to a folder with a report.

    The folder contains each figure as PNG and PDF, ``report.md`` and ``report.html``. A figure whose run fails is
    omitted and counts as a violated claim.

    Parameters
    ----------
    source : str
        Name of the source; `SOURCES` lists all names.
    out : str or Path, optional
        Output folder, created if necessary. Default: ``reproduce-kinon-betsch-2023`` for this source.
    only : str or sequence of str, optional
        Numbers of the selected figures, such as ``"7"`` or ``"7,8"``. Default: all figures.
    progress : bool, optional
        Whether to show a progress bar. Default: only on a terminal.

    Returns
    -------
    Report
        Figures and measured claims.

    Raises
    ------
    InputError
        If the source or a figure does not exist, or if the folder cannot be written.
    """
    entries, paper = figures(source, only), source_of(source)
    folder = Path(f"reproduce-{paper.name}" if out is None else out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder '{folder}': {error.strerror}") from None
    from livens.reproduce.report import write_report

    report = Report(paper, folder)
    with _progress(paper.name, len(entries), progress) as report_progress:
        for entry in entries:
            report_progress(entry)
            report.results.append(_draw_figure(entry, folder))
    write_report(report)
    return report


def reproduce_all(out: str | Path | None = None, *, progress: bool | None = None) -> list[Report]:
    """Reproduce all sources, with all figures in one folder and all claims in one report.

    Parameters
    ----------
    out : str or Path, optional
        Output folder, created if necessary. Default: ``reproduce``.
    progress : bool, optional
        Whether to show a progress bar. Default: only on a terminal.

    Returns
    -------
    list of Report
        One report per source.
    """
    from livens.reproduce.report import write_report

    folder = Path("reproduce" if out is None else out)
    reports = [reproduce(name, folder, progress=progress) for name in SOURCES]
    write_report(*reports)
    return reports


def _draw_figure(entry: FigureEntry, folder: Path) -> FigureResult:
    from livens.plot.style import save

    try:
        picture, claims = entry.draw()
    except IntegrationError as error:
        return FigureResult(entry, (), (Claim("The runs of this figure can be completed.", str(error), False),))
    stem = f"{entry.source}-figure-{entry.number.zfill(2)}"
    files = [save(picture, folder / f"{stem}.{suffix}").name for suffix in ("png", "pdf")]
    return FigureResult(entry, tuple(files), tuple(claims))


@contextmanager
def _progress(title: str, total: int, show: bool | None) -> Iterator[Callable[[FigureEntry], None]]:
    """Show a progress bar on stderr with the current figure."""
    from livens.run.progress import is_interactive

    if not (is_interactive() if show is None else show):
        yield lambda entry: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("figures")
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        started = 0

        def report_progress(entry: FigureEntry) -> None:
            nonlocal started
            bar.update(task, completed=started, description=f"{title} figure {entry.number}")
            started += 1

        yield report_progress
