"""Vectors of eight instances: who shares one, how they are read and written, and sweeps over them part by part."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens.engine import compiled_step
from livens.engine.assembled import indexed_emitter, symbolic_analysis
from livens.engine.assembled.cache_blocking import TileSchedule
from livens.engine.assembled.indexed_emitter import OFFSETS, WIDTH, IndexedEmitter, pack_lanes
from livens.engine.assembled.lane_assignment import contiguous_runs, fill_vectors, lane_keys
from livens.engine.assembled.residual_gather import ResidualGather
from livens.engine.codegen.jit import compile_function


def called(emitter, table, source, out, slots, outputs):
    """Run a kernel over all blocks of an index table."""
    code = compile_function(emitter.to_ir_loop(slots, outputs, 0), emitter.name, 1)
    header = np.zeros(OFFSETS, dtype=np.int64)
    header[:3] = 0, len(table), table.ctypes.data
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(code.address)
    function(source.ctypes.data, source.ctypes.data, source.ctypes.data, header.ctypes.data, out.ctypes.data)


@pytest.mark.parametrize("quick", [False, True])
def test_numbers_are_gathered(monkeypatch, quick):
    """One by one, or by one instruction: the same numbers."""
    monkeypatch.setattr(indexed_emitter, "has_fast_gather", lambda: quick)
    random = np.random.default_rng(0)
    source, table = random.normal(size=200), random.integers(0, 190, (20, 2))
    e = IndexedEmitter("gathered")
    e.store_lanes(e.gather("%a0", 0, 3), "%out", 0)
    e.store_lanes(e.gather("%a0", 1), "%out", 1)
    blocks = pack_lanes(table.astype(np.int32))
    out = np.zeros((len(blocks), 2, WIDTH))
    called(e, blocks, source, out, 2, 2)
    assert np.array_equal(
        out.transpose(0, 2, 1).reshape(-1, 2)[:20], np.stack([source[table[:, 0] + 3], source[table[:, 1]]], 1)
    )


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_numbers_are_scattered(count):
    """Side by side in groups of eight, four, two and one; and nothing beside them."""
    places = np.random.default_rng(count).permutation(11)[:, None] * 16
    e = IndexedEmitter("scattered")
    e.scatter((e.gather("%a1", 0, i), "%a4", 0, i) for i in range(count))
    source, out = np.arange(176.0), np.full(176, -1.0)
    called(e, pack_lanes(places.astype(np.int32)), source, out, 1, 0)
    expected = np.full((11, 16), -1.0)
    expected[:, :count] = source.reshape(11, 16)[:, :count]
    assert np.array_equal(out.reshape(11, 16), expected)


def test_what_is_side_by_side_is_read_and_written_at_once():
    """The lanes that repeat the last instance write nothing."""
    e = IndexedEmitter("beside", [0])
    e.scatter([(e.gather("%a1", 0, 2), "%a4", 0, 1)])
    source, out = np.arange(30.0), np.full(30, -1.0)
    called(e, pack_lanes(np.arange(11, dtype=np.int32)[:, None]), source, out, 1, 0)
    assert out.tolist() == [-1.0, *range(2, 13), *[-1.0] * 18]


@given(first=st.integers(0, 40), second=st.integers(0, 40), cut=st.integers(0, 8))
@settings(max_examples=30, deadline=None)
def test_two_runs_are_read_as_they_stand(first, second, cut):
    indices = np.concatenate([first + np.arange(cut), second + np.arange(8 - cut)]).astype(np.int32)
    able, single, told = contiguous_runs(indices[None, None])
    assert able.all() and (single.all() or not (np.diff(indices) == 1).all())
    source, out = np.random.default_rng(1).normal(size=80), np.zeros(WIDTH)
    e = IndexedEmitter("two")
    e.store_lanes(e.load_runs("%a0", 0, 0, True), "%out", 0)
    inside = source[WIDTH:-WIDTH]  # runs may begin before the first number, and end behind the last
    called(e, np.ascontiguousarray(told), inside, out, 1, 1)
    assert np.array_equal(out, inside[indices])
    three = np.array([0, 1, 5, 6, 9, 10, 11, 12])
    assert not contiguous_runs(three)[0]


@given(count=st.integers(0, 700))
@settings(max_examples=50, deadline=None)
def test_every_body_has_a_lane(count):
    """And its neighbours are in the vectors beside its own, but at the ends of stretches."""
    keys = lane_keys(count)
    assert np.array_equal(np.sort(keys), np.arange(count))
    beside = keys[1:] - keys[:-1] == WIDTH
    assert beside.mean() > 0.85 if count > 300 else True


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_vectors_are_filled_up(data):
    keys = sorted(data.draw(st.sets(st.integers(0, 200), min_size=1)))
    slots, places = fill_vectors(keys)
    assert len(slots) % WIDTH == 0 and [slots[place] for place in places] == list(range(len(keys)))
    assert set(slots) == set(range(len(keys)))
    if len(slots) > -(-len(keys) // WIDTH) * WIDTH:  # it is worth it only where each stands in its lane
        assert [place % WIDTH for place in places] == [key % WIDTH for key in keys]


@given(seed=st.integers(0, 10**6), size=st.integers(1, 60))
@settings(max_examples=20, deadline=None)
def test_residuals_are_summed_up_in_the_order_of_the_pool(seed, size):
    """Against sums in plain words: rows, impulses of forces alone, and the largest entry; a NaN is the largest."""
    random = np.random.default_rng(seed)
    targets = [random.integers(-1, size, 40) for _ in range(6)]
    pool = random.normal(size=512)
    positions = [random.permutation(480)[:40] for _ in range(6)]
    forces, cut = [True, False, True, False, False, True], size // 2
    sums = ResidualGather(targets, positions, forces, cut, size)
    exact, pushes = np.zeros(size), np.zeros(size)
    for target, position, force in zip(targets, positions, forces, strict=True):
        for i, at in zip(target, position, strict=True):
            if i >= 0:
                exact[i] += pool[at]
                pushes[i] += pool[at] if force and i < cut else 0.0
    out, impulses = np.zeros(sums.equations.size), np.zeros(sums.equations.size)
    largest = np.zeros(WIDTH, dtype=np.int64)
    scale = np.full(sums.equations.size, 2.0)
    tables = sums.tables(impulses)
    padded = np.concatenate([np.zeros(WIDTH), pool, np.zeros(WIDTH)])[WIDTH:]
    for batch, code, table in zip(sums.batches, sums.compile(), tables, strict=True):
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(code.address)
        at = 8 * batch.first_row
        function(
            padded.ctypes.data, scale.ctypes.data + at, largest.ctypes.data, table.ctypes.data, out.ctypes.data + at
        )
    assert np.array_equal(sums.equations[sums.row_of], np.arange(size))
    assert np.allclose(out[sums.row_of], exact, rtol=0, atol=1e-13)
    assert np.array_equal(out, out[sums.row_of][sums.equations])
    assert np.allclose(impulses[sums.row_of], pushes, rtol=0, atol=1e-13)
    assert largest.max().view(np.float64) == 2.0 * np.abs(out).max()


@pytest.mark.parametrize(
    "options", [dict(name="chain", N=40), dict(name="n-four-bar", N=30), dict(name="chain", N=40, tree=5)]
)
def test_sweeps_in_parts_change_no_bit(monkeypatch, options):
    """In one part, or in many: whoever computes a number computes it from the same numbers."""
    problem = lv.problems.load(**options)
    found = []
    for numbers in (10**9, 700):
        monkeypatch.setattr(
            symbolic_analysis, "TileSchedule", lambda size, numbers=numbers: TileSchedule(size, numbers)
        )
        compiled_step._compiled.clear()
        found.append(lv.simulate(problem, t_end=20 * problem.h))
        compiled = compiled_step.compiled_step(problem.model, lv.schemes.get(problem.scheme))
        parts = compiled.elimination.tile_schedule.n_tiles
        assert (parts > 4) == (numbers == 700)
    compiled_step._compiled.clear()
    assert np.array_equal(found[0].q, found[1].q) and np.array_equal(found[0].multipliers, found[1].multipliers)
