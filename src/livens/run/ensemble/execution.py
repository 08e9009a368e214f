"""Execution of an ensemble in blocks of members, locally or on a dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from livens.engine.ensemble.lane_run import (
    ARRAYS,
    EnsembleArrays,
    HistogramSpec,
    InputTable,
    TimeGrid,
)
from livens.engine.ensemble.serialized_step import SerializedStep, run_block
from livens.engine.ensemble.stepper import EnsembleStepper
from livens.errors import InputError, MissingExtraError
from livens.run.ensemble.member_runs import MemberRuns
from livens.run.ensemble.partial_results import open_block_store

#: Member steps per block (number of members times number of steps): some seconds of computing time.
_BLOCK_STEPS = 100_000_000
#: Largest number of members per block.
_MAX_BLOCK_MEMBERS = 65_536
#: Number of retries of a block that raises on a worker. Blocks of lost workers are always rescheduled.
_RETRIES = 2


@dataclass(frozen=True)
class EnsembleColumns:
    """Names and slices of the stored columns, and the indices of the members in order of execution."""

    variables: dict[str, slice]
    members: np.ndarray
    n_members: int  # all members, including those without a valid initial state


@dataclass(frozen=True)
class EnsembleJob:
    """Sorted members of an ensemble with everything needed to integrate them."""

    stepper: EnsembleStepper | MemberRuns
    z: np.ndarray
    k: np.ndarray
    schedule: TimeGrid
    bins: tuple[HistogramSpec, ...]
    threads: int
    columns: EnsembleColumns
    inputs: InputTable

    @property
    def blocks(self) -> list[slice]:
        """Slices of members per block, multiples of the SIMD width: results do not depend on the block size."""
        width = self.stepper.width
        size = int(min(max(_BLOCK_STEPS // max(1, self.schedule.n_steps), width), _MAX_BLOCK_MEMBERS)) // width * width
        return [slice(start, min(start + size, len(self.z))) for start in range(0, len(self.z), size)]

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the equations."""
        return self.stepper.fingerprint if isinstance(self.stepper, MemberRuns) else self.serialized_step().fingerprint

    def serialized_step(self) -> SerializedStep:
        stepper = self.stepper
        assert isinstance(stepper, EnsembleStepper)
        return SerializedStep.serialize(
            stepper.compiled.flat_equations, stepper.monitor_spec, stepper.order, stepper.width
        )


ProgressCallback = Callable[[int], None]


def execute(
    job: EnsembleJob, out: Path | None, client: str | None, force: bool, on_progress: ProgressCallback
) -> EnsembleArrays:
    """Integrate all members; `on_progress` is called with the number of finished members."""
    if out is None and client is None:
        return job.stepper.integrate(job.z, job.k, job.schedule, job.threads, job.bins, on_progress, job.inputs)
    store = open_block_store(out, job, force) if out is not None else None
    blocks = job.blocks
    outcomes: dict[int, EnsembleArrays] = {}
    done = 0

    def collect(index: int, outcome: EnsembleArrays) -> None:
        nonlocal done
        outcomes[index] = outcome
        done += blocks[index].stop - blocks[index].start
        on_progress(done)

    pending = []
    for index in range(len(blocks)):
        stored = store.load(index) if store is not None else None
        if stored is None:
            pending.append(index)
        else:
            collect(index, stored)
    for index, outcome in _run_locally(job, pending) if client is None else _run_on_dask(job, pending, client):
        if store is not None:
            store.save(index, outcome)
        collect(index, outcome)
    return concatenate([outcomes[index] for index in range(len(blocks))], [block.start for block in blocks])


def _run_locally(job: EnsembleJob, pending: Sequence[int]) -> Iterator[tuple[int, EnsembleArrays]]:
    blocks = job.blocks
    for index in pending:
        block = blocks[index]
        members = job.z[block], job.k[block], job.schedule, job.threads, job.bins
        yield index, job.stepper.integrate(*members, inputs=job.inputs.of_members(block))


def _run_on_dask(job: EnsembleJob, pending: Sequence[int], client: object) -> Iterator[tuple[int, EnsembleArrays]]:
    """Run blocks as dask tasks and yield outcomes in order of completion; blocks of lost workers are rescheduled."""
    if not pending:
        return
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise MissingExtraError("a client", "cluster") from None
    if not isinstance(client, Client):
        raise InputError(f"client must be a dask.distributed.Client, got {client!r}")
    serialized_step, blocks = job.serialized_step(), job.blocks
    futures = {}
    for index in pending:
        block = blocks[index]
        # Sent with every block: scattered data are lost together with the worker that stores them.
        future = client.submit(
            run_block,
            serialized_step,
            job.z[block],
            job.k[block],
            job.schedule,
            job.threads,
            job.bins,
            job.inputs.of_members(block),
            pure=False,
            retries=_RETRIES,
        )
        futures[future] = index
    try:
        for future in as_completed(list(futures)):
            outcome = future.result()
            index = futures.pop(future)
            future.release()
            yield index, outcome
    finally:
        client.cancel(list(futures))


def concatenate(outcomes: Sequence[EnsembleArrays], starts: Sequence[int]) -> EnsembleArrays:
    """Concatenate the outcomes of consecutive blocks."""
    arrays = {name: np.concatenate([getattr(outcome, name) for outcome in outcomes]) for name in ARRAYS}
    reasons = {
        start + member: reason
        for outcome, start in zip(outcomes, starts, strict=True)
        for member, reason in outcome.failures.items()
    }
    return EnsembleArrays(
        **arrays, failures=reasons, n_scalar_fallbacks=sum(outcome.n_scalar_fallbacks for outcome in outcomes)
    )
