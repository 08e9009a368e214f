"""Pool of the assembled tier: a workspace is reused when, and only when, no view of its arrays exists."""

import sys

import numpy as np
import pytest

from livens.engine.assembled.time_loop import ChunkWorkspace
from livens.engine.assembled.workspace_pool import WorkspacePool
from livens.engine.stepper import IntegratorState

N_STEPS, N_STATE = 4, 3


def state():
    return IntegratorState.initial(0.0, np.zeros(N_STATE), np.zeros(2))


def pool(spare=None):
    def allocate(n_steps):
        return ChunkWorkspace.allocate(np.zeros(1), (1.0,), N_STATE, 2, 2, 1, n_steps)

    return WorkspacePool(allocate, [] if spare is None else spare)


@pytest.mark.parametrize("refcount", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", ["Z", "X", "M"])
def test_memory_with_a_view_is_never_reused_by_any_count_of_references(monkeypatch, name, refcount):
    monkeypatch.setattr(sys, "getrefcount", lambda obj: refcount)  # the count depends on the interpreter
    workspaces = pool()
    row = getattr(workspaces.acquire(state(), N_STEPS)[0], name)[1][:1]  # a view of a view
    row[:] = 7.0
    for _ in range(3):
        other, _ = workspaces.acquire(state(), N_STEPS)
        assert not np.shares_memory(row, getattr(other, name))
        getattr(other, name)[:] = -1.0
        del other
    assert row == 7.0


def test_memory_without_a_view_is_reused():
    workspaces = pool()
    address = workspaces.acquire(state(), N_STEPS)[0].Z.ctypes.data
    assert workspaces.acquire(state(), N_STEPS)[0].Z.ctypes.data == address


def test_memory_of_an_earlier_run_is_reused_without_its_views_only():
    spare = []
    first = pool(spare)
    row = first.acquire(state(), N_STEPS)[0].Z[0]
    first.release()
    second = pool(spare)
    other = second.acquire(state(), N_STEPS)[0].Z
    assert not np.shares_memory(row, other)
    addresses = {row.ctypes.data, other.ctypes.data}
    del row, other
    second.release()
    third = pool(spare)
    assert third.acquire(state(), N_STEPS)[0].Z.ctypes.data in addresses


def test_the_next_chunk_continues_in_the_same_workspace():
    workspaces = pool()
    w, has_history = workspaces.acquire(state(), N_STEPS)
    final = IntegratorState(0.0, w.Z[N_STEPS], w.X[:1], np.zeros(2), np.zeros(2), w.M[N_STEPS])
    workspaces.mark_end(final, N_STEPS)
    following, has_history_of_final = workspaces.acquire(final, N_STEPS)
    assert (has_history, has_history_of_final) == (False, True)
    assert np.shares_memory(following.Z[0], final.z)
