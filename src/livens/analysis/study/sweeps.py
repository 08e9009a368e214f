"""Parameter sweeps over all cores or a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from livens import problems
from livens.analysis.study.batched_runs import MIN_BATCH, run_block, run_members
from livens.analysis.study.cluster import run_on_cluster
from livens.analysis.study.grid import combinations
from livens.analysis.study.process_pool import ProcessPool, WorkerLostError
from livens.analysis.study.sweep_run import RUN_OPTIONS
from livens.analysis.study.table_files import write_table
from livens.errors import InputError, explain_call_errors, suggestion
from livens.models.problem import Problem
from livens.run.progress import Progress
from livens.scene import html
from livens.validation import check_integer

#: Maximum number of runs per batch with one worker; the progress bar and Ctrl-C wait for a batch.
_SERIAL_BLOCK = 512
#: Target number of blocks per worker, for load balancing and a small loss on Ctrl-C. A block has at least MIN_BATCH
#: runs if there are enough.
_BLOCKS_PER_WORKER = 16
#: Maximum number of rows shown in a notebook.
_MAX_SHOWN = 20


@dataclass(frozen=True)
class Sweep:
    """Table of a parameter sweep, one row per run in the order of the combinations.

    Parameters
    ----------
    problem : str
        Name of the problem.
    rows : tuple of dict
        Rows, values by column name.
    total : int
        Number of combinations.
    interrupted : bool, default False
        True if Ctrl-C ended the sweep early.
    """

    problem: str
    rows: tuple[dict[str, Any], ...]
    total: int
    interrupted: bool = False

    @property
    def failures(self) -> tuple[dict[str, Any], ...]:
        """Rows of the runs that were not completed."""
        return tuple(row for row in self.rows if row["status"] != "complete")

    def column(self, name: str) -> list[Any]:
        """Return one column of the table; None where a row has no such entry.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        list
            Values, one per row.
        """
        return [row.get(name) for row in self.rows]

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row per run.
        """
        from livens.results.pandas_export import import_pandas

        return import_pandas().DataFrame(list(self.rows))

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        failed = f", {len(self.failures)} failed" if self.failures else ""
        shown = self.rows[:_MAX_SHOWN]
        remainder = f"<p>and {len(self.rows) - _MAX_SHOWN} more</p>" if len(self.rows) > _MAX_SHOWN else ""
        table = html.table(names, ([row.get(name) for name in names] for row in shown))
        head = f"<p>sweep of {html.escape(self.problem)}: {len(self.rows)} of {self.total} runs{failed}</p>"
        return f"{head}{table}{remainder}"

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the table to a file, as CSV or Parquet by its suffix.

        Parameters
        ----------
        path : str or Path
            File with the suffix ``.csv`` or ``.parquet``.
        force : bool, default False
            Replace an existing file.

        Returns
        -------
        Path
            The file.
        """
        return write_table(self.rows, path, force=force)


@explain_call_errors
def sweep(
    problem: str | Callable[..., Problem],
    vary: Mapping[str, Iterable[object]],
    options: Mapping[str, object] | None = None,
    *,
    final: bool = False,
    workers: int | None = None,
    client: object = None,
    progress: bool | None = None,
) -> Sweep:
    """Run a problem with all combinations of parameter values.

    A failed run is a row with the status "failed" and the reason. Ctrl-C ends the sweep with the completed rows. Worker
    processes are spawned: a script that calls `sweep` needs ``if __name__ == "__main__":``.

    Parameters
    ----------
    problem : str or callable
        Name of a built-in problem, or a module-level function that returns a `Problem`.
    vary : dict of str to iterable
        Values of options of the problem, or of ``h``, ``t_end``, ``scheme``.
    options : dict, optional
        Fixed options of the problem or of the run.
    final : bool, default False
        Also store the final state of every run: q and v, q and p of a Hamiltonian, otherwise x.
    workers : int, optional
        Number of processes; 1 runs in this process. Default: one per core. Runs of a block that differ in numbers only
        are integrated as one ensemble.
    client : dask.distributed.Client, optional
        Client of a cluster (``pip install 'livens[cluster]'``). Blocks of runs are distributed over its workers; blocks
        of lost workers are run again.
    progress : bool, optional
        Show a progress bar.

    Returns
    -------
    Sweep
        Table of the runs.

    Raises
    ------
    InputError
        If nothing is varied, or if an option is unknown.

    Examples
    --------

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
            return _collect_rows(name, members, bar, done)
        if count == 1:
            return _run_serial(name, problem, members, fixed, final, bar)
        return _run_parallel(name, problem, members, fixed, final, bar, count)


def _run_serial(
    name: str,
    problem: str | Callable[..., Problem],
    members: list[dict[str, object]],
    fixed: dict[str, object],
    final: bool,
    bar: Progress,
) -> Sweep:
    rows: list[dict[str, object]] = []
    try:
        for start in range(0, len(members), _SERIAL_BLOCK):
            for row in run_members(problem, fixed, members[start : start + _SERIAL_BLOCK], final):
                if row["status"] == "interrupted":
                    raise KeyboardInterrupt
                rows.append(row)
            bar.update(len(rows))
    except KeyboardInterrupt:
        return Sweep(name, tuple(rows), len(members), interrupted=True)
    return Sweep(name, tuple(rows), len(members))


def _run_parallel(
    name: str,
    problem: str | Callable[..., Problem],
    members: list[dict[str, object]],
    fixed: dict[str, object],
    final: bool,
    bar: Progress,
    count: int,
) -> Sweep:
    with ProcessPool(count, run_block) as pool:
        return _collect_rows(name, members, bar, _block_results(pool, problem, members, fixed, final, count))


def _block_results(
    pool: ProcessPool,
    problem: str | Callable[..., Problem],
    members: list[dict[str, object]],
    fixed: dict[str, object],
    final: bool,
    count: int,
) -> Iterator[list[tuple[int, Any]]]:
    """Iterate over rows of members as blocks complete; members of a failed block are run again one by one."""
    size = max(MIN_BATCH, len(members) // (_BLOCKS_PER_WORKER * count)) if len(members) >= MIN_BATCH * count else 1
    blocks = [range(start, min(start + size, len(members))) for start in range(0, len(members), size)]
    lost: list[int] = []
    for done in pool.map_unordered([(problem, fixed, [members[i] for i in block], final) for block in blocks]):
        rows: list[tuple[int, Any]] = []
        for index, outcome in done:
            if isinstance(outcome, Exception) and len(blocks[index]) > 1:
                lost += blocks[index]
            else:
                block_rows = [outcome] if isinstance(outcome, Exception) else outcome
                rows += zip(blocks[index], block_rows, strict=True)
        yield rows
    for done in pool.map_unordered([(problem, fixed, [members[i]], final) for i in lost]):
        yield [(lost[index], outcome if isinstance(outcome, Exception) else outcome[0]) for index, outcome in done]


def _collect_rows(
    name: str, members: list[dict[str, Any]], bar: Progress, outcomes: Iterable[list[tuple[int, Any]]]
) -> Sweep:
    """Collect the rows of all runs; after Ctrl-C, of the completed runs."""
    rows: dict[int, dict[str, Any]] = {}
    interrupted = False
    try:
        for done in outcomes:
            rows |= {i: _row(outcome, members[i]) for i, outcome in done}
            bar.update(len(rows))
    except KeyboardInterrupt:
        interrupted = True
    completed = tuple(rows[i] for i in sorted(rows) if rows[i]["status"] != "interrupted")
    return Sweep(name, completed, len(members), interrupted)


def _row(outcome: Any, member: Mapping[str, float] | Mapping[str, str]) -> dict[str, float | str]:
    """Return the row of a run, also if its worker process was killed."""
    if isinstance(outcome, WorkerLostError):
        return {**member, "status": "failed", "reason": "a process of the sweep was killed, perhaps for lack of memory"}
    if isinstance(outcome, Exception):  # arguments or results that cannot be pickled
        return {**member, "status": "failed", "reason": f"{type(outcome).__name__}: {outcome}"}
    return dict(outcome)


def _check_names(problem: str | Callable[..., Problem], names: set[str]) -> None:
    if not isinstance(problem, str):
        if not callable(problem):
            raise InputError(f"sweep needs the name of a problem or a function that returns one, got {problem!r}")
        return
    others = {name for name in names if name not in (*RUN_OPTIONS, *problems.entry(problem).options)}
    if others:  # parameters of the model, or unknown names
        known = [*problems.entry(problem).options, *RUN_OPTIONS, *problems.load(problem).model.parameters]
        for name in sorted(others - set(known)):
            raise InputError(f"problem '{problem}' has no option '{name}'{suggestion(name, known)}")


def _workers(workers: int | None, members: int) -> int:
    if workers is None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, min(available, members))
    return min(check_integer("workers", workers, minimum=1), members)
