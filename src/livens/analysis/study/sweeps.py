"""A problem run with many values of its options, over all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from livens import problems
from livens.analysis.study.cluster import run_on_cluster
from livens.analysis.study.crew import Crew, LostWorkerError
from livens.analysis.study.grid import combinations
from livens.analysis.study.grouped import WORTH, run_block, run_members
from livens.analysis.study.member import RUN_OPTIONS
from livens.analysis.study.table import write_table
from livens.errors import InputError, suggestion
from livens.expressions.numbers import whole_number
from livens.models import html
from livens.models.problem import Problem
from livens.run.progress import Progress

#: With one worker, this many runs are taken together at most: a progress bar and Ctrl-C wait for them.
_TOGETHER = 512
#: With several workers, each gets about this many blocks of runs, so that none waits long for the last one, and what is
#: lost with Ctrl-C is little. A block has at least so many runs that they are worth taking together.
_SHARES = 16
#: A notebook shows at most this many rows.
_SHOWN = 20


@dataclass(frozen=True)
class Sweep:
    """One row per run, in the order of the combinations. `interrupted` if Ctrl-C left some out."""

    problem: str
    rows: tuple[dict[str, Any], ...]
    total: int
    interrupted: bool = False

    @property
    def failures(self) -> tuple[dict[str, Any], ...]:
        return tuple(row for row in self.rows if row["status"] != "complete")

    def column(self, name: str) -> list[Any]:
        """One column of the table; None where a row has no such entry."""
        return [row.get(name) for row in self.rows]

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        from livens.results.tables import pandas

        return pandas().DataFrame(list(self.rows))

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        failed = f", {len(self.failures)} failed" if self.failures else ""
        shown = self.rows[:_SHOWN]
        more = f"<p>and {len(self.rows) - _SHOWN} more</p>" if len(self.rows) > _SHOWN else ""
        table = html.table(names, ([row.get(name) for name in names] for row in shown))
        return f"<p>sweep of {html.cell(self.problem)}: {len(self.rows)} of {self.total} runs{failed}</p>{table}{more}"

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the table, as CSV or Parquet by the suffix of the file."""
        return write_table(self.rows, path, force=force)


def sweep(
    problem: str | Callable[..., Problem],
    vary: Mapping[str, Iterable[Any]],
    options: Mapping[str, Any] | None = None,
    *,
    final: bool = False,
    workers: int | None = None,
    client: Any = None,
    progress: bool | None = None,
) -> Sweep:
    """Run a problem with every combination of some values.

    :param problem: name of a ready problem, or a function at the top of a module that returns a Problem.
    :param vary: options of the problem, or ``h``, ``t_end``, ``scheme``, each with its values.
    :param options: the same for what stays as it is.
    :param final: also keep the state at the end of every run: q and v, of a Hamiltonian q and p, else x.
    :param workers: how many processes; 1 runs here, without any. By default one per core. Each takes the runs of a
        block that differ in numbers only together, as `livens.ensemble` does.
    :param client: a client of dask.distributed (``pip install 'livens[cluster]'``): the runs are spread over its
        workers in blocks, and those of workers that are lost are run again by others.

    A run that fails is a row with the status "failed" and the reason. Ctrl-C ends the sweep with what is done so far.
    Processes are started afresh: a script that calls this needs the usual ``if __name__ == "__main__":``.

    >>> import livens as lv
    >>> study = lv.study.sweep("simple-pendulum", dict(l=[1.0, 2.0], h=[0.01]), dict(t_end=1.0), workers=1)
    >>> study.column("l"), study.column("status")
    ([1.0, 2.0], ['complete', 'complete'])
    """
    members, fixed = combinations(vary), dict(options or {})
    _check_names(problem, {*vary, *fixed})
    count = _workers(workers, len(members))
    name = problem if isinstance(problem, str) else getattr(problem, "__name__", "problem")
    with Progress(f"{name}: sweep", len(members), progress, unit="runs") as bar:
        if client is not None:
            done = run_on_cluster(client, problem, fixed, members, final)
            return _gathered(name, members, bar, done)
        if count == 1:
            return _here(name, problem, members, fixed, final, bar)
        return _spread(name, problem, members, fixed, final, bar, count)


def _here(
    name: str,
    problem: str | Callable[..., Problem],
    members: list[dict[str, Any]],
    fixed: dict[str, Any],
    final: bool,
    bar: Progress,
) -> Sweep:
    rows: list[dict[str, Any]] = []
    try:
        for first in range(0, len(members), _TOGETHER):
            for row in run_members(problem, fixed, members[first : first + _TOGETHER], final):
                if row["status"] == "interrupted":
                    raise KeyboardInterrupt
                rows.append(row)
            bar.update(len(rows))
    except KeyboardInterrupt:
        return Sweep(name, tuple(rows), len(members), interrupted=True)
    return Sweep(name, tuple(rows), len(members))


def _spread(
    name: str,
    problem: str | Callable[..., Problem],
    members: list[dict[str, Any]],
    fixed: dict[str, Any],
    final: bool,
    bar: Progress,
    count: int,
) -> Sweep:
    with Crew(count, run_block) as crew:
        return _gathered(name, members, bar, _answers(crew, problem, members, fixed, final, count))


def _answers(
    crew: Crew,
    problem: str | Callable[..., Problem],
    members: list[dict[str, Any]],
    fixed: dict[str, Any],
    final: bool,
    count: int,
) -> Iterator[list[tuple[int, Any]]]:
    """Rows of members as blocks of them are done; those of a block whose process was lost are tried one by one."""
    size = max(WORTH, len(members) // (_SHARES * count)) if len(members) >= WORTH * count else 1
    blocks = [range(first, min(first + size, len(members))) for first in range(0, len(members), size)]
    lost: list[int] = []
    for done in crew.do([(problem, fixed, [members[i] for i in block], final) for block in blocks]):
        rows: list[tuple[int, Any]] = []
        for number, answer in done:
            if isinstance(answer, Exception) and len(blocks[number]) > 1:
                lost += blocks[number]
            else:
                told = [answer] if isinstance(answer, Exception) else answer
                rows += zip(blocks[number], told, strict=True)
        yield rows
    for done in crew.do([(problem, fixed, [members[i]], final) for i in lost]):
        yield [(lost[number], answer if isinstance(answer, Exception) else answer[0]) for number, answer in done]


def _gathered(
    name: str, members: list[dict[str, Any]], bar: Progress, answers: Iterable[list[tuple[int, Any]]]
) -> Sweep:
    """The rows of all runs, or if Ctrl-C comes of those that are done."""
    rows: dict[int, dict[str, Any]] = {}
    interrupted = False
    try:
        for done in answers:
            rows |= {i: _row(answer, members[i]) for i, answer in done}
            bar.update(len(rows))
    except KeyboardInterrupt:
        interrupted = True
    kept = tuple(rows[i] for i in sorted(rows) if rows[i]["status"] != "interrupted")
    return Sweep(name, kept, len(members), interrupted)


def _row(answer: Any, member: Mapping[str, Any]) -> dict[str, Any]:
    """What a run left behind, also if its process was killed (by a lack of memory, say)."""
    if isinstance(answer, LostWorkerError):
        return {**member, "status": "failed", "reason": "a process of the sweep was killed, perhaps for lack of memory"}
    if isinstance(answer, Exception):  # what could not be sent to a process or back
        return {**member, "status": "failed", "reason": f"{type(answer).__name__}: {answer}"}
    return dict(answer)


def _check_names(problem: str | Callable[..., Problem], names: set[str]) -> None:
    if not isinstance(problem, str):
        if not callable(problem):
            raise InputError(f"sweep needs the name of a problem or a function that returns one, got {problem!r}")
        return
    others = {name for name in names if name not in (*RUN_OPTIONS, *problems.entry(problem).options)}
    if others:  # parameters of the model, or slips of the pen
        known = [*problems.entry(problem).options, *RUN_OPTIONS, *problems.load(problem).system.parameters]
        for name in sorted(others - set(known)):
            raise InputError(f"problem '{problem}' has no option '{name}'{suggestion(name, known)}")


def _workers(workers: int | None, members: int) -> int:
    if workers is None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, min(available, members))
    return min(whole_number("workers", workers, least=1), members)
