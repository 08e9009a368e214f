"""Pool of chunk workspaces: the end of a chunk is the start of the next one.

States and unknowns are written once and not changed, so that nothing is copied between chunks. When a workspace is
full, another one is used. A workspace is leased: it is reused when no array that views it exists any more.
"""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from livens.engine.assembled.time_loop import ChunkWorkspace
from livens.engine.stepper import IntegratorState

#: Size in bytes up to which a workspace has capacity for two chunks, and up to which it is kept for later runs.
_MAX_SPARE_BYTES = 64_000_000


class _Lease:
    """Token of a leased workspace. It exists as long as an array that views the workspace exists."""

    __slots__ = ("__weakref__",)


class _LeasedBuffer:
    """Memory of an array together with the token of its lease: base object of all views of the memory."""

    def __init__(self, array: np.ndarray, lease: _Lease) -> None:
        self._array, self._lease = array, lease
        self.__array_interface__: dict[str, Any] = array.__array_interface__


class LeasedWorkspace:
    """Chunk workspace whose arrays are lent to one user at a time."""

    def __init__(self, workspace: ChunkWorkspace) -> None:
        self._workspace = workspace
        self._lease: weakref.ref[_Lease] | None = None

    @property
    def is_leased(self) -> bool:
        """True while an array that views the leased memory exists."""
        return self._lease is not None and self._lease() is not None

    @property
    def n_steps(self) -> int:
        """Capacity in steps."""
        return len(self._workspace.newton_iterations)

    @property
    def n_bytes(self) -> int:
        """Size in bytes."""
        return int(self._workspace.Z.nbytes + self._workspace.X.nbytes + self._workspace.M.nbytes)

    def lease(self) -> ChunkWorkspace:
        """Return the workspace for a new user. Its former contents are lost."""
        assert not self.is_leased, "the workspace is in use"
        lease = _Lease()
        self._lease = weakref.ref(lease)
        w = self._workspace
        Z, X, M = (np.asarray(_LeasedBuffer(array, lease)) for array in (w.Z, w.X, w.M))
        return dataclasses.replace(w, Z=Z, X=X, M=M)


class WorkspacePool:
    """Pool of workspaces for chunks of steps."""

    def __init__(self, allocate: Callable[[int], ChunkWorkspace], spare: list[LeasedWorkspace]) -> None:
        """Create a pool; `allocate` returns a workspace for n steps, `spare` contains workspaces of earlier runs."""
        self._allocate, self._spare = allocate, spare
        self._workspaces: list[LeasedWorkspace] = []
        with contextlib.suppress(IndexError):  # concurrent runs may empty the list
            while True:
                self._workspaces.append(spare.pop())
        self._current: ChunkWorkspace | None = None
        self._chunk_start = 0  # first step of the current chunk
        self._end: tuple[IntegratorState, int] | None = None  # final state of the last chunk, and its step index

    def acquire(self, state: IntegratorState, n_steps: int) -> tuple[ChunkWorkspace, bool]:
        """Return a workspace for steps from a state, and whether it already contains the history of the state."""
        end, self._end = self._end, None
        if (
            self._current is not None
            and end is not None
            and end[0] is state
            and end[1] + n_steps <= len(self._current.newton_iterations)
        ):
            self._chunk_start = end[1]
            return self._current.view_from(self._chunk_start), True
        self._current = None  # ends its lease, unless states of the last chunk are in use
        self._current, self._chunk_start = self._unused(n_steps).lease(), 0
        return self._current.view_from(0), False

    def mark_end(self, state: IntegratorState, n_steps: int) -> None:
        """Record the final state of the current chunk, after `n_steps` steps."""
        self._end = state, self._chunk_start + n_steps

    def release(self) -> None:
        """Return workspaces of moderate size to the spare list: new memory is slower than reuse."""
        self._current = self._end = None
        self._spare += [workspace for workspace in self._workspaces if workspace.n_bytes <= _MAX_SPARE_BYTES]
        self._workspaces = []

    def _unused(self, n_steps: int) -> LeasedWorkspace:
        """Return a workspace that is not leased, or allocate a new one."""
        self._workspaces = [workspace for workspace in self._workspaces if workspace.n_steps >= n_steps]
        for workspace in self._workspaces:
            if not workspace.is_leased:
                return workspace
        allocated = LeasedWorkspace(self._allocate(n_steps))
        if 2 * allocated.n_bytes <= _MAX_SPARE_BYTES:
            allocated = LeasedWorkspace(self._allocate(2 * n_steps))
        self._workspaces.append(allocated)
        return allocated
