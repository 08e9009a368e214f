"""Pool of chunk workspaces: the end of a chunk is the start of the next one.

States and unknowns are written once and not changed, so that nothing is copied between chunks. When a workspace is
full, another one without remaining references is used.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from livens.engine.assembled.time_loop import ChunkWorkspace
from livens.engine.stepper import IntegratorState

#: Size in bytes up to which a workspace has capacity for two chunks, and up to which it is kept for later runs.
_MAX_SPARE_BYTES = 64_000_000
#: Reference count of an unshared array: its workspace, two references of the loop over arrays, and `getrefcount`.
_UNSHARED_REFCOUNT = 4


class WorkspacePool:
    """Pool of workspaces for chunks of steps."""

    def __init__(self, allocate: Callable[[int], ChunkWorkspace], spare: list[ChunkWorkspace]) -> None:
        """Create a pool; `allocate` returns a workspace for n steps, `spare` contains workspaces of earlier runs."""
        self._allocate, self._spare = allocate, spare
        self._workspaces: list[ChunkWorkspace] = []
        with contextlib.suppress(IndexError):  # concurrent runs may empty the list
            while True:
                self._workspaces.append(spare.pop())
        self._current: ChunkWorkspace | None = None
        self._chunk_start = 0  # first step of the current chunk
        self._end: tuple[IntegratorState, int] | None = None  # final state of the last chunk, and its step index

    def acquire(self, state: IntegratorState, n_steps: int) -> tuple[ChunkWorkspace, bool]:
        """Return a workspace for steps from a state, and whether it already contains the history of the state."""
        workspace, end, self._end = self._current, self._end, None
        if (
            workspace is not None
            and end is not None
            and end[0] is state
            and end[1] + n_steps <= len(workspace.newton_iterations)
        ):
            self._chunk_start = end[1]
            return workspace.view_from(self._chunk_start), True
        self._current, self._chunk_start = self._unused(n_steps), 0
        return self._current.view_from(0), False

    def mark_end(self, state: IntegratorState, n_steps: int) -> None:
        """Record the final state of the current chunk, after `n_steps` steps."""
        self._end = state, self._chunk_start + n_steps

    def release(self) -> None:
        """Return workspaces of moderate size to the spare list: new memory is slower than reuse."""
        self._current = self._end = None
        self._spare += [workspace for workspace in self._workspaces if _n_bytes(workspace) <= _MAX_SPARE_BYTES]
        self._workspaces = []

    def _unused(self, n_steps: int) -> ChunkWorkspace:
        """Return a workspace whose arrays have no views, or allocate a new one."""
        self._workspaces = [workspace for workspace in self._workspaces if len(workspace.newton_iterations) >= n_steps]
        for workspace in self._workspaces:
            if all(sys.getrefcount(array) == _UNSHARED_REFCOUNT for array in (workspace.Z, workspace.X, workspace.M)):
                return workspace
        workspace_new = self._allocate(n_steps)
        if 2 * _n_bytes(workspace_new) <= _MAX_SPARE_BYTES:
            workspace_new = self._allocate(2 * n_steps)
        self._workspaces.append(workspace_new)
        return workspace_new


def _n_bytes(workspace: ChunkWorkspace) -> int:
    """Return the size of a workspace in bytes."""
    return int(workspace.Z.nbytes + workspace.X.nbytes + workspace.M.nbytes)
