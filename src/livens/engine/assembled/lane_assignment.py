"""Assignment of instances to SIMD lanes, so that neighbouring bodies are in neighbouring vectors.

A chain is cut into segments of sixteen bodies, and each of eight consecutive segments has its own lane. Couplings of a
body to the next or second next body then couple whole vectors, lane by lane: vectors are loaded contiguously instead of
gathered. Rows of loops and other structures that are periodic in the order of their bodies gain as much; other
structures lose nothing.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from livens.engine.assembled.indexed_emitter import WIDTH
from livens.schemes.discretization.assembly_plan import AssemblyPlan, ElementBatch

#: Lengths of the segments, and of the segments of the remainder: powers of two, because each level eliminates about
#: every second body, and the same bodies in all lanes.
_SEGMENT_LENGTHS = (16, 8, 4, 2, 1)
#: Instances keep their lanes if the number of vectors grows at most by this factor.
_MAX_VECTOR_RATIO = 1.1
#: Attributes of an element batch with one row per instance.
_INSTANCE_ARRAYS = (
    "unknown_dofs",
    "state_dofs",
    "parameter_dofs",
    "compensation_dofs",
    "equation_dofs",
    "final_dofs",
    "compensation_out_dofs",
    "increment_dofs",
    "compensation_low_dofs",
)


def lane_keys(count: int) -> np.ndarray:
    """Return the lane key of each body: its position in the order of vectors; the lane is the key modulo eight."""
    keys, n_assigned = np.arange(count), 0
    for length in _SEGMENT_LENGTHS:
        n_full = (count - n_assigned) // (WIDTH * length) * WIDTH * length
        segments = np.arange(n_full).reshape(-1, WIDTH, length)  # segments in the order of bodies
        keys[n_assigned : n_assigned + n_full] = n_assigned + np.argsort(segments.transpose(0, 2, 1), axis=None)
        n_assigned += n_full
    return keys


def permute_batches(plan: AssemblyPlan) -> AssemblyPlan:
    """Return the assembly plan with the instances of every batch permuted to lane order."""
    keys = lane_keys(int(plan.body_index.max(initial=-1)) + 1)
    return dataclasses.replace(plan, batches=tuple(_permute_batch(p, plan.body_index, keys) for p in plan.batches))


def _permute_batch(element_batch: ElementBatch, body: np.ndarray, keys: np.ndarray) -> ElementBatch:
    bodies = body[element_batch.unknown_dofs]
    has_body = bodies >= 0
    if (
        not keys.size or not has_body.any() or not element_batch.residual.numel()
    ):  # the batch writes no vectors to the pool
        return element_batch
    first_body = np.where(has_body, bodies, body.size).min(axis=1)
    key = np.where(first_body < body.size, keys[np.minimum(first_body, keys.size - 1)], body.size)
    by_key = np.argsort(key, kind="stable")
    group_starts = np.flatnonzero(np.diff(key[by_key], prepend=-1))
    occurrence = np.empty(key.size, dtype=np.int64)  # index among the instances of one body
    occurrence[by_key] = np.arange(key.size) - np.repeat(group_starts, np.diff(group_starts, append=key.size))
    order = np.lexsort((key % WIDTH, occurrence, key // WIDTH))
    if (order == np.arange(order.size)).all():
        return element_batch
    tables = {name: getattr(element_batch, name) for name in _INSTANCE_ARRAYS}
    return dataclasses.replace(
        element_batch, **{name: t[order] for name, t in tables.items() if len(t) == element_batch.count}
    )


def fill_vectors(keys: list[int]) -> tuple[list[int], list[int]]:
    """Distribute instances with sorted keys over vectors; return the instance of every lane and the lane of every
    instance.

    Each instance occupies the lane of its key if that hardly needs more vectors than dense packing. Vectors are padded
    by repetition.
    """
    count = len(keys)
    lanes = [key % WIDTH for key in keys]
    group_starts = [i for i in range(count) if not i or keys[i] // WIDTH != keys[i - 1] // WIDTH]
    has_distinct_lanes = all(
        lanes[i] > lanes[i - 1] for i in range(1, count) if keys[i] // WIDTH == keys[i - 1] // WIDTH
    )
    min_vectors = -(-count // WIDTH)
    if not has_distinct_lanes or len(group_starts) > _MAX_VECTOR_RATIO * min_vectors:
        return [min(i, count - 1) for i in range(min_vectors * WIDTH)], list(range(count))
    instances: list[int] = []
    lanes_of: list[int] = []
    for start, stop in itertools.pairwise([*group_starts, count]):
        instance_of_lane = {lanes[i]: i for i in range(start, stop)}
        lanes_of += [len(instances) + lanes[i] for i in range(start, stop)]
        instances += [instance_of_lane.get(lane, start) for lane in range(WIDTH)]
    return instances, lanes_of


def contiguous_runs(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Analyse blocks of eight indices (last axis) as runs of consecutive numbers.

    Returns whether each block has at most two runs, whether it has one run, and its encoding for the kernel: start of
    both runs minus the lanes before, and the lanes of the second run as a bit mask.
    """
    breaks = np.diff(indices, axis=-1) != 1
    n_breaks = breaks.sum(axis=-1)
    second_start = np.where(n_breaks > 0, breaks.argmax(axis=-1) + 1, 0)
    second_base = np.take_along_axis(indices, second_start[..., None], axis=-1)[..., 0] - second_start
    mask = np.where(n_breaks > 0, (0xFF << second_start) & 0xFF, 0)
    encoding = np.zeros_like(indices)
    encoding[..., 0], encoding[..., 1], encoding[..., 2] = indices[..., 0], second_base, mask
    return n_breaks <= 1, n_breaks == 0, encoding
