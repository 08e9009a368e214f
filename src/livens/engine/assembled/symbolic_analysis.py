"""Symbolic analysis: elimination levels of independent blocks, and classes of structurally equal fronts.

Blocks are bodies, with the multipliers of constraints on the body alone, and joints. Every level eliminates the
cheapest blocks that are mutually uncoupled; for a chain this is odd-even reduction with log N levels. A joint is
eliminated after its body. Blocks without small fronts of equal structure form the root front. Nets would consist of
the root only: they use dense fronts without levels.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np

from livens.engine.arrays import offsets
from livens.engine.assembled.assembly import Assembly
from livens.engine.assembled.cache_blocking import TileSchedule, monotone_max
from livens.engine.assembled.contiguous_ranges import split_contiguous
from livens.engine.assembled.front_class import ContributionPattern, FrontClass, FrontStructure, NoPivotError
from livens.engine.assembled.front_types import Contribution, Front, FrontBatch, RootFront, dense_root
from livens.engine.assembled.indexed_emitter import WIDTH, pack_lanes, pool_index
from livens.engine.assembled.lane_assignment import fill_vectors, lane_keys

#: Relative and absolute tolerance of the boundary size, with respect to the smallest, within one level. Without a
#: tolerance a chain would be eliminated from its ends.
_BOUNDARY_RTOL, _BOUNDARY_ATOL = 2.0, 4
#: Upper bounds of the number of unknowns of a front, and of the number of classes.
_MAX_FRONT, _MAX_CLASSES = 48, 150
#: Upper bound of the flops of a class; lower bound and increment per front for classes with few fronts, to limit the
#: compile time.
_MAX_FLOPS, _BASE_FLOPS, _FLOPS_PER_FRONT = 4000, 1000, 40
#: Upper bound of the code size in flops, plus a term per unknown, for levels in which nearly every front has its own
#: structure, as in nets.
_MAX_CODE, _CODE_PER_UNKNOWN = 10_000, 0.5
#: A tree is irregular if the number of joints per body takes more than this many values. Leaves are eliminated first if
#: at least one block in twelve is a leaf, and at most eight leaves on average share a neighbour (hub of a star).
_MAX_JOINT_COUNTS = 3
_BLOCKS_PER_LEAF, _MAX_LEAVES_PER_BLOCK = 12, 8
#: Size of the root front, which is solved densely: lower and upper bound, and number of unknowns per root unknown.
#: Compiling the last few fronts takes longer than solving them densely.
_MIN_ROOT, _MAX_ROOT, _UNKNOWNS_PER_ROOT = 24, 64, 500


#: Boundary, contributions in canonical order, and their indices.
_FrontDescription = tuple[list[int], tuple[tuple[ContributionPattern, int, tuple[int, ...]], ...], list[int]]


class EliminationPlan:
    """Symbolic analysis of the elimination; shared by all runs of a model."""

    def __init__(self, assembly: Assembly, pivot_sample: np.ndarray | None, max_front: int = _MAX_FRONT) -> None:
        """Analyse the structure; `pivot_sample` is a contribution pool at a generic position, used to choose pivots.

        Without `pivot_sample` there are no levels, but dense fronts for the whole matrix.
        """
        self._assembly, self._max_front = assembly, max_front
        self.classes: list[FrontClass] = []
        self.fronts: dict[int, list[Front]] = defaultdict(list)  # by class index
        self.batches: list[FrontBatch] = []
        self.pool_offsets: dict[int, int] = {}
        self.factor_offsets: dict[int, int] = {}
        self.tables: list[np.ndarray] = []
        self.pool_size, self.factor_size, self.levels = int(assembly.pool_sizes[0]), 0, 0
        self.tile_schedule, self.sum_tiles, self.front_tiles = TileSchedule(0), list[np.ndarray](), list[np.ndarray]()
        if pivot_sample is None:
            self.root = dense_root(assembly)
            assert self.root.plan is not None
            self.flops = self.root.plan.flops
            return
        self._pivot_sample, self._sample_size = (
            np.concatenate([pivot_sample, np.zeros(pivot_sample.size)]),
            pivot_sample.size,
        )
        self._form_blocks()
        self._collect_contributions()
        self._match_joints()
        self._assign_lanes()
        self._eliminate_levels()
        self._lay_out_pool()

    # -- blocks and contributions -------------------------------------------------------------------------------------
    def _form_blocks(self) -> None:
        plan = self._assembly.plan
        self._block = plan.body_index.copy()
        count = int(self._block.max(initial=-1)) + 1
        self.n_bodies = count
        for element_batch in plan.batches:
            if not element_batch.jac_pattern:
                continue
            is_multiplier = plan.is_multiplier[element_batch.unknown_dofs[0]]
            if not is_multiplier.any():
                continue
            multipliers, other_blocks = (
                element_batch.unknown_dofs[:, is_multiplier],
                self._block[element_batch.unknown_dofs[:, ~is_multiplier]],
            )
            free = self._block[multipliers[:, 0]] < 0
            has_single_block = (
                (other_blocks == other_blocks[:, :1]).all(axis=1)
                if other_blocks.shape[1]
                else np.zeros(len(other_blocks), dtype=bool)
            )
            on_single_body = free & has_single_block
            if on_single_body.any():
                self._block[multipliers[on_single_body]] = other_blocks[on_single_body, :1]
            joints = np.flatnonzero(free & ~has_single_block)
            joints = joints[np.argsort(multipliers[joints, 0])]  # in the order of multipliers, independent of lanes
            self._block[multipliers[joints]] = (count + np.arange(joints.size))[:, None]
            count += joints.size
        order = np.argsort(self._block, kind="stable")
        sizes = np.bincount(self._block, minlength=count)
        starts = offsets(sizes)
        self._position = np.empty(plan.size, dtype=np.int64)
        self._position[order] = np.arange(plan.size) - starts[self._block[order]]
        self.unknowns = [order[a:b].tolist() for a, b in itertools.pairwise(starts)]
        types = plan.is_multiplier.astype(int)
        self._unknown_types = [tuple(types[unknowns].tolist()) for unknowns in self.unknowns]

    def _collect_contributions(self) -> None:
        """Collect the contributions of the elements, which come first."""
        assembly = self._assembly
        self.contributions: list[Contribution] = []
        self._patterns: dict[tuple[object, ...], ContributionPattern] = {}
        self._contributions_of: list[list[tuple[int, int]]] = [[] for _ in self.unknowns]  # (contribution, local block)
        for i, kernel in enumerate(assembly.kernels):
            element_batch = kernel.element_batch
            if not element_batch.jac_pattern:
                continue
            pool_indices = assembly.pool_offsets[i, 0] + pool_index(np.arange(element_batch.count), kernel.n_outputs)
            blocks, positions = (
                self._block[element_batch.unknown_dofs].tolist(),
                self._position[element_batch.unknown_dofs].tolist(),
            )
            row_blocks, row_positions = self._equation_blocks(element_batch.equation_dofs)
            patterns: dict[tuple[object, ...], ContributionPattern] = {}
            for e in range(element_batch.count):
                local_blocks = list(dict.fromkeys(blocks[e]))
                local_index_of = {block: local_index for local_index, block in enumerate(local_blocks)}
                columns = tuple((local_index_of[b], a) for b, a in zip(blocks[e], positions[e], strict=True))
                rows = tuple(
                    (local_index_of[b] if b >= 0 else -1, a)
                    for b, a in zip(row_blocks[e], row_positions[e], strict=True)
                )
                key = columns, rows
                if key not in patterns:
                    entries = tuple(
                        (*rows[row], *columns[column], kernel.n_rows + a)
                        for a, (row, column) in enumerate(element_batch.jac_pattern)
                        if rows[row][0] >= 0
                    )
                    patterns[key] = self._pattern(entries, (), len(local_blocks))
                self._add_contribution(
                    Contribution(
                        patterns[key], tuple(local_blocks), int(pool_indices[e]), sample_index=int(pool_indices[e])
                    )
                )

    def _equation_blocks(self, equations: np.ndarray) -> tuple[list[list[int]], list[list[int]]]:
        is_omitted = equations < 0
        block = np.where(is_omitted, -1, self._block[np.where(is_omitted, 0, equations)])
        position = np.where(is_omitted, -1, self._position[np.where(is_omitted, 0, equations)])
        return block.tolist(), position.tolist()

    def _pattern(
        self,
        entries: tuple[tuple[int, int, int, int, int], ...],
        rhs: tuple[tuple[int, int, int], ...],
        n_blocks: int,
    ) -> ContributionPattern:
        """Return a unique object for equal contribution patterns."""
        key = entries, rhs, n_blocks
        if key not in self._patterns:
            self._patterns[key] = ContributionPattern(len(self._patterns), *key)
        return self._patterns[key]

    def _add_contribution(self, contribution: Contribution) -> None:
        index = len(self.contributions)
        self.contributions.append(contribution)
        for local_block, block in enumerate(contribution.blocks):
            self._contributions_of[block].append((index, local_block))

    def _match_joints(self) -> None:
        """Match every joint of a tree with a body by removing leaves; then its Schur complement is definite."""
        count = len(self.unknowns)
        self._joint_match: dict[int, int] = {}
        self._is_irregular_tree = False
        if count - self.n_bodies >= self.n_bodies:
            return
        bodies_of: dict[int, set[int]] = defaultdict(set)
        for contribution in self.contributions:
            joints = [b for b in contribution.blocks if b >= self.n_bodies]
            for joint in joints:
                bodies_of[joint] |= {b for b in contribution.blocks if b < self.n_bodies}
        joints_of: dict[int, set[int]] = defaultdict(set)
        for joint, bodies in bodies_of.items():
            for body in bodies:
                joints_of[body].add(joint)
        self._is_irregular_tree = len({len(joints) for joints in joints_of.values()}) > _MAX_JOINT_COUNTS
        # a body with constraints on itself may have no degree of freedom left for a joint
        has_free_dof = [
            not any(self._unknown_types[b]) or 2 * sum(self._unknown_types[b]) <= len(self._unknown_types[b])
            for b in range(self.n_bodies)
        ]
        leaves = [b for b in range(self.n_bodies) if len(joints_of[b]) == 1 and has_free_dof[b]]
        match: dict[int, int] = {}
        while leaves:
            body = leaves.pop()
            if len(joints_of[body]) != 1:
                continue
            joint = joints_of[body].pop()
            match[joint] = body
            for neighbour in bodies_of[joint]:
                joints_of[neighbour].discard(joint)
                if len(joints_of[neighbour]) == 1 and has_free_dof[neighbour]:
                    leaves.append(neighbour)
        if len(match) == count - self.n_bodies:
            self._joint_match = match

    def _assign_lanes(self) -> None:
        """Assign SIMD lanes: the lane key of a front is that of its body, or of the body of its joint."""
        keys = lane_keys(self.n_bodies)
        self._lane_key = keys.tolist() + [len(keys)] * (len(self.unknowns) - self.n_bodies)
        for contribution in self.contributions:
            first_body = min(contribution.blocks)
            if first_body < self.n_bodies:
                for block in contribution.blocks:
                    if block >= self.n_bodies:
                        self._lane_key[block] = min(self._lane_key[block], self._lane_key[first_body])

    # -- levels -------------------------------------------------------------------------------------------------------
    def _sort_key(self, reference: tuple[int, int]) -> tuple[object, ...]:
        """Return the sort key of a contribution at a block: pattern first, then the bodies it belongs to."""
        index, local_block = reference
        contribution = self.contributions[index]
        return contribution.pattern.index, local_block, contribution.blocks, index

    def _describe_front(self, block: int) -> _FrontDescription:
        """Return boundary, contributions in canonical order, and their indices."""
        bound: dict[int, int] = {}
        indices: list[int] = []
        structure = []
        ordered = sorted(self._contributions_of[block], key=self._sort_key)
        for index, local_block in ordered:
            contribution = self.contributions[index]
            local = [-1] * len(contribution.blocks)
            for local_neighbour in contribution.pattern.adjacency[local_block]:
                neighbour = contribution.blocks[local_neighbour]
                if neighbour != block and self._active[neighbour]:
                    local[local_neighbour] = bound.setdefault(neighbour, len(bound))
            structure.append((contribution.pattern, local_block, tuple(local)))
            indices.append(index)
        return list(bound), tuple(structure), indices

    def _eliminate_levels(self) -> None:
        count = len(self.unknowns)
        sizes = [len(unknowns) for unknowns in self.unknowns]
        self._active = [True] * count
        unlocked = [b < self.n_bodies for b in range(count)]
        classes_by_key: dict[tuple[object, ...], FrontClass] = {}
        remaining, stale = list(range(count)), set(range(count))
        descriptions: dict[int, _FrontDescription] = {}
        cost: dict[int, int] = {}
        rejected: set[int] = set()
        max_code = _MAX_CODE + _CODE_PER_UNKNOWN * sum(sizes)
        root_size = min(max(_MIN_ROOT, sum(sizes) // _UNKNOWNS_PER_ROOT), _MAX_ROOT)
        while remaining:
            for b in stale:
                if self._active[b]:
                    descriptions[b] = self._describe_front(b)
                    cost[b] = sum(sizes[x] for x in descriptions[b][0])
            rejected -= stale
            stale = set()
            candidates = [
                b for b in remaining if unlocked[b] and b not in rejected and cost[b] + sizes[b] <= self._max_front
            ]
            n_remaining = sum(sizes[b] for b in remaining)
            if not candidates or len(self.classes) > _MAX_CLASSES or n_remaining <= root_size:
                break
            selected = self._choose_leaves(candidates, descriptions, len(remaining)) or _min_degree_set(
                candidates, descriptions, cost
            )
            groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
            fronts, absorbed = self._absorb_contributions(selected, descriptions)
            for b in selected:
                bound, structure, _ = fronts[b]
                ids = tuple((s.index, local_block, local) for s, local_block, local in structure)
                groups[self._unknown_types[b], ids, tuple(sizes[x] for x in bound)].append(b)
            if 2 * len(groups) > len(selected) and sum(front_class.flops for front_class in self.classes) > max_code:
                break  # nearly every front has its own structure
            eliminated: set[int] = set()
            for key, members in groups.items():
                members.sort(key=lambda b: (self._lane_key[b], b))
                eliminated |= self._eliminate_fronts(key, members, fronts, classes_by_key, rejected)
            if not eliminated and not (set(candidates) - rejected):
                break
            for b in eliminated:
                self._active[b] = False
                for x in descriptions[b][0]:
                    stale.add(x)
                    if x >= self.n_bodies and not unlocked[x]:
                        unlocked[x] = self._joint_match[x] == b if self._joint_match else True
            remaining = [b for b in remaining if self._active[b]]
            for b in eliminated:
                for x, contribution in absorbed[b]:
                    self._contributions_of[x].remove(contribution)
            for x in stale:
                self._contributions_of[x] = [s for s in self._contributions_of[x] if self._is_active(x, *s)]
            self.levels += 1
        self._root_blocks = remaining

    def _choose_leaves(
        self, candidates: list[int], descriptions: dict[int, _FrontDescription], n_remaining: int
    ) -> list[int]:
        """Return leaves of an irregular tree, at most one per neighbour, if there are many leaves.

        The other leaves follow in the next level and absorb the contribution of this one. All bodies then have the
        same structure, independent of the number of leaves.
        """
        leaves = (
            [b for b in candidates if len(descriptions[b][0]) <= 1]
            if self._joint_match and self._is_irregular_tree
            else []
        )
        if _BLOCKS_PER_LEAF * len(leaves) < n_remaining:
            return []
        used: set[int] = set()
        selected = []
        for b in leaves:
            if b not in used and not used.intersection(descriptions[b][0]):
                selected.append(b)
                used.update(descriptions[b][0])
        return selected if _MAX_LEAVES_PER_BLOCK * len(selected) >= len(leaves) else []

    def _absorb_contributions(
        self, selected: list[int], descriptions: dict[int, _FrontDescription]
    ) -> tuple[dict[int, _FrontDescription], dict[int, list[tuple[int, tuple[int, int]]]]]:
        """Return the fronts of a level, and the contributions absorbed from their boundaries.

        The first front of a level absorbs contributions of earlier fronts to a boundary block alone. The number of
        contributions of a block then stays constant, and the fronts of all levels have the same structure.
        """
        fronts: dict[int, _FrontDescription] = {}
        absorbed: dict[int, list[tuple[int, tuple[int, int]]]] = {}
        used: set[int] = set()
        for b in selected:
            bound, structure, indices = descriptions[b]
            absorbed[b], extra = [], []
            for boundary_index, x in enumerate(bound):
                if x in used:
                    continue
                used.add(x)
                for index, local_block in self._contributions_of[x]:
                    contribution = self.contributions[index]
                    other_blocks = [other for other in contribution.blocks if other not in (x, b)]
                    is_absorbable = contribution.front_class is not None or len(contribution.blocks) > 1
                    if is_absorbable and not any(self._active[other] for other in other_blocks):
                        absorbed[b].append((x, (index, local_block)))
                        local = tuple(
                            boundary_index if i == local_block else -1 for i in range(len(contribution.blocks))
                        )
                        extra.append(
                            (
                                boundary_index,
                                self._sort_key((index, local_block)),
                                index,
                                (contribution.pattern, -1, local),
                            )
                        )
            extra.sort(key=lambda item: item[:2])
            fronts[b] = bound, (*structure, *(item[-1] for item in extra)), [*indices, *(item[2] for item in extra)]
        return fronts, absorbed

    def _is_active(self, block: int, index: int, local_block: int) -> bool:
        """Return True if a contribution still couples a block to an active block, or has a right-hand side."""
        contribution = self.contributions[index]
        adjacent = contribution.pattern.adjacency[local_block]
        return local_block in contribution.pattern.blocks_with_rhs or any(
            self._active[contribution.blocks[other]] for other in adjacent
        )

    def _eliminate_fronts(
        self,
        key: tuple[object, ...],
        members: list[int],
        descriptions: dict[int, _FrontDescription],
        classes_by_key: dict[tuple[object, ...], FrontClass],
        rejected: set[int],
    ) -> set[int]:
        """Eliminate fronts of one structure; fronts with vanishing pivots are rejected and wait."""
        front_class = classes_by_key.get(key)
        if front_class is None:
            front_class = FrontClass(
                FrontStructure(self._unknown_types[members[0]], descriptions[members[0]][1], key[2])  # type: ignore[arg-type]
            )
        sample_indices = np.array([[self.contributions[s].sample_index for s in descriptions[b][2]] for b in members])
        strides = [WIDTH if self.contributions[s].front_class is None else 1 for s in descriptions[members[0]][2]]
        A = front_class.assemble_sample(self._pivot_sample, sample_indices.reshape(len(members), -1), strides)
        try:
            is_usable = front_class.eliminate_sample(A)
        except NoPivotError:
            is_usable = np.zeros(len(members), dtype=bool)
        max_flops = min(_MAX_FLOPS, _BASE_FLOPS + _FLOPS_PER_FRONT * len(members))
        if front_class.pivot_order and key not in classes_by_key and front_class.flops > max_flops:
            is_usable[:] = False
        rejected |= {b for b, usable in zip(members, is_usable, strict=True) if not usable}
        if not is_usable.any():
            return set()
        if key not in classes_by_key:
            classes_by_key[key] = front_class
            front_class.index = len(self.classes)
            self.classes.append(front_class)
            front_class.pattern = self._pattern(*front_class.contribution_pattern)
        assert front_class.pattern is not None
        class_index = front_class.index
        fronts = self.fronts[class_index]
        first_front = len(fronts)
        members = [b for i, b in enumerate(members) if is_usable[i]]
        values = np.zeros((len(members), front_class.n_outputs))
        for slot, (i, j) in enumerate(front_class.update_entries):
            values[:, slot] = A[is_usable, i, j]
        new_fronts = [
            Front(descriptions[b][2], self.unknowns[b], [u for x in descriptions[b][0] for u in self.unknowns[x]])
            for b in members
        ]
        slots, lanes = fill_vectors([self._lane_key[b] for b in members])
        fronts += [new_fronts[i] for i in slots]
        for i, b in enumerate(members):
            if descriptions[b][0]:
                sample_index = self._sample_size + i * front_class.n_outputs
                self._add_contribution(
                    Contribution(
                        front_class.pattern,
                        tuple(descriptions[b][0]),
                        first_front + lanes[i],
                        front_class,
                        sample_index,
                    )
                )
        self._store_sample(values.ravel())
        self.batches.append(FrontBatch(front_class, first_front // WIDTH, len(fronts) // WIDTH, self.levels))
        return set(members)

    def _store_sample(self, values: np.ndarray) -> None:
        """Append the sample values of eliminated fronts."""
        stop = self._sample_size + values.size
        if stop > self._pivot_sample.size:
            self._pivot_sample = np.concatenate([self._pivot_sample, np.zeros(stop)])
        self._pivot_sample[self._sample_size : stop] = values
        self._sample_size = stop

    # -- memory layout ------------------------------------------------------------------------------------------------
    def _lay_out_pool(self) -> None:
        pool_top, factor_top = int(self._assembly.pool_sizes[0]), 0
        for class_index, front_class in enumerate(self.classes):
            self.pool_offsets[id(front_class)], self.factor_offsets[id(front_class)] = pool_top, factor_top
            pool_top += len(self.fronts[class_index]) * front_class.n_outputs
            factor_top += len(self.fronts[class_index]) * front_class.n_factor_entries
        self.pool_size, self.factor_size = pool_top, factor_top
        pool_indices = np.array([self._pool_index(source) for source in self.contributions], dtype=np.int64)
        for class_index in range(len(self.classes)):
            contributions = np.array(
                [pool_indices[front.contributions] for front in self.fronts[class_index]], dtype=np.int32
            )
            unknowns = np.array(
                [[*front.pivots, *front.boundary] for front in self.fronts[class_index]], dtype=np.int32
            )
            rows = self._assembly.residual_gather.row_of[unknowns[:, : self.classes[class_index].n_pivots]].astype(
                np.int32
            )
            self.tables.append(pack_lanes(self.classes[class_index].index_table(contributions, rows, unknowns)))
        self._tile()
        for front_class, table in zip(self.classes, self.tables, strict=True):
            self.batches = split_contiguous(self.batches, front_class, table)
        self.root = self._build_root(pool_indices)
        #: Code size of the classes in flops, and average number of fronts per class.
        self.code_size = sum(front_class.flops for front_class in self.classes)
        self.fronts_per_class = (len(self.unknowns) - len(self._root_blocks)) / max(len(self.classes), 1)
        self.flops = float(sum(front_class.flops * len(self.fronts[n]) for n, front_class in enumerate(self.classes)))
        self.fronts.clear()
        self._pivot_sample = np.zeros(0)

    def _tile(self) -> None:
        """Assign the blocks of element batches, sums and fronts to tiles."""
        assembly, schedule = self._assembly, TileSchedule(self.pool_size)
        for kernel, base in zip(assembly.kernels, assembly.pool_offsets[:, 0].tolist(), strict=True):
            schedule.mark_written(
                base, kernel.n_outputs, schedule.initial_tiles(-(-kernel.element_batch.count // WIDTH))
            )
        sums = assembly.residual_gather
        sum_tiles = [schedule.tiles_after(batch.positions) for batch in sums.batches]
        row_tiles = np.zeros(sums.equations.size // WIDTH, dtype=np.int64)
        for rows, tiles in zip(sums.batches, sum_tiles, strict=True):
            row_tiles[rows.first_row // WIDTH : rows.first_row // WIDTH + tiles.size] = tiles
        front_tiles = [np.zeros(len(table), dtype=np.int64) for table in self.tables]
        for batch in self.batches:
            front_class, blocks = batch.front_class, slice(batch.first_block, batch.stop_block)
            table = self.tables[front_class.index][blocks]
            rhs_rows = np.concatenate([table[:, slot] + offset for slot, offset in front_class.rhs_addresses], axis=1)
            available = np.stack(
                [
                    schedule.tiles_after(table[:, : front_class.n_contributions]),
                    monotone_max(row_tiles[rhs_rows // WIDTH]),
                ],
                axis=1,
            )
            front_tiles[front_class.index][blocks] = tiles = monotone_max(available)
            schedule.mark_written(
                self.pool_offsets[id(front_class)] + batch.first_block * WIDTH * front_class.n_outputs,
                front_class.n_outputs,
                tiles,
            )
        self.tile_schedule, self.sum_tiles, self.front_tiles = schedule, sum_tiles, front_tiles

    def _pool_index(self, contribution: Contribution) -> int:
        if contribution.front_class is None:
            return contribution.pool_index
        outputs = contribution.front_class.n_outputs
        return self.pool_offsets[id(contribution.front_class)] + int(
            pool_index(np.array([contribution.pool_index]), outputs)[0]
        )

    def _build_root(self, pool_indices: np.ndarray) -> RootFront:
        blocks = self._root_blocks
        unknowns = [u for b in blocks for u in self.unknowns[b]]
        root_index = {u: i for i, u in enumerate(unknowns)}
        entries: list[tuple[int, int, int]] = []
        rhs_entries: list[tuple[int, int]] = []
        visited: set[int] = set()
        for b in blocks:
            for index, _ in self._contributions_of[b]:
                if index in visited:
                    continue
                visited.add(index)
                contribution = self.contributions[index]
                active = [self._active[x] for x in contribution.blocks]
                unknowns_of = [self.unknowns[x] for x in contribution.blocks]
                for i, a, j, c, slot in contribution.pattern.entries:
                    if active[i] and active[j]:
                        entries.append(
                            (
                                root_index[unknowns_of[i][a]],
                                root_index[unknowns_of[j][c]],
                                int(pool_indices[index]) + slot * WIDTH,
                            )
                        )
                for i, a, slot in contribution.pattern.rhs:
                    if active[i]:
                        rhs_entries.append((root_index[unknowns_of[i][a]], int(pool_indices[index]) + slot * WIDTH))
        rows, columns, positions = np.array(entries, dtype=np.int64).reshape(-1, 3).T.copy()
        targets, rhs_positions = np.array(rhs_entries, dtype=np.int64).reshape(-1, 2).T.copy()
        return RootFront(np.array(unknowns, dtype=np.int64), rows, columns, positions, targets, rhs_positions)


def _min_degree_set(
    candidates: list[int], descriptions: dict[int, _FrontDescription], cost: dict[int, int]
) -> list[int]:
    """Return mutually uncoupled blocks with small boundaries (minimum degree)."""
    smallest = min(cost[b] for b in candidates)
    blocked: set[int] = set()
    selected = []
    for b in candidates:
        if cost[b] <= max(_BOUNDARY_RTOL * smallest, smallest + _BOUNDARY_ATOL) and b not in blocked:
            selected.append(b)
            blocked.update(descriptions[b][0])
    return selected
