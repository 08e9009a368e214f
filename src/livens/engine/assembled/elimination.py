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

from livens.engine.assembled.assembly import Assembly
from livens.engine.assembled.front_class import FrontClass, NoPivotError, Shape, Signature
from livens.engine.assembled.front_records import Batch, Core, Front, Source, dense_core
from livens.engine.assembled.indexed import WIDTH, in_blocks, in_pool
from livens.engine.assembled.lane_order import in_whole_vectors, lane_keys
from livens.engine.assembled.stretches import in_stretches
from livens.engine.assembled.sweep import Sweep, in_turn

#: Relative and absolute tolerance of the boundary size, with respect to the smallest, within one level. Without a
#: tolerance a chain would be eliminated from its ends.
_TOLERANCE, _MORE = 2.0, 4
#: Upper bounds of the number of unknowns of a front, and of the number of classes.
_LARGEST_FRONT, _MOST_CLASSES = 48, 150
#: Upper bound of the flops of a class; lower bound and increment per front for classes with few fronts, to limit the
#: compile time.
_MOST_PRODUCTS, _FEW_PRODUCTS, _PRODUCTS_PER_FRONT = 4000, 1000, 40
#: Upper bound of the code size in flops, plus a term per unknown, for levels in which nearly every front has its own
#: structure, as in nets.
_CODE, _CODE_PER_UNKNOWN = 10_000, 0.5
#: A tree is irregular if the number of joints per body takes more than this many values. Leaves are eliminated first if
#: at least one block in twelve is a leaf, and at most eight leaves on average share a neighbour (hub of a star).
_REGULAR = 3
_FEW_LEAVES, _SHARED_LEAVES = 12, 8
#: Size of the root front, which is solved densely: lower and upper bound, and number of unknowns per root unknown.
#: Compiling the last few fronts takes longer than solving them densely.
_SMALL_CORE, _LARGE_CORE, _UNKNOWNS_PER_CORE = 24, 64, 500


#: Boundary, contributions in canonical order, and their indices.
_Found = tuple[list[int], tuple[tuple[Signature, int, tuple[int, ...]], ...], list[int]]


class Elimination:
    """Symbolic analysis of the elimination; shared by all runs of a model."""

    def __init__(self, assembly: Assembly, trial: np.ndarray | None, largest: int = _LARGEST_FRONT) -> None:
        """Analyse the structure; `pivot_sample` is a contribution pool at a generic position, used to choose pivots.

        Without `pivot_sample` there are no levels, but dense fronts for the whole matrix.
        """
        self._assembly, self._largest = assembly, largest
        self.classes: list[FrontClass] = []
        self.fronts: dict[int, list[Front]] = defaultdict(list)  # by class index
        self.batches: list[Batch] = []
        self.bases: dict[int, int] = {}
        self.factor_bases: dict[int, int] = {}
        self.tables: list[np.ndarray] = []
        self.pool_size, self.factor_size, self.rounds = int(assembly.tops[0]), 0, 0
        self.sweep, self.of_sums, self.of_fronts = Sweep(0), list[np.ndarray](), list[np.ndarray]()
        if trial is None:
            self.core = dense_core(assembly)
            assert self.core.plan is not None
            self.products = self.core.plan.products
            return
        self._trial, self._trial_size = np.concatenate([trial, np.zeros(trial.size)]), trial.size
        self._blocks()
        self._elements()
        self._joints_of_trees()
        self._lanes()
        self._rounds()
        self._place()

    # -- blocks and contributions -------------------------------------------------------------------------------------
    def _blocks(self) -> None:
        pieces = self._assembly.pieces
        self._block = pieces.body.copy()
        count = int(self._block.max(initial=-1)) + 1
        self.bodies = count
        for piece in pieces.pieces:
            if not piece.pattern:
                continue
            of_multipliers = pieces.multiplier[piece.x[0]]
            if not of_multipliers.any():
                continue
            multipliers, others = piece.x[:, of_multipliers], self._block[piece.x[:, ~of_multipliers]]
            free = self._block[multipliers[:, 0]] < 0
            one = (others == others[:, :1]).all(axis=1) if others.shape[1] else np.zeros(len(others), dtype=bool)
            alone = free & one
            if alone.any():
                self._block[multipliers[alone]] = others[alone, :1]
            joints = np.flatnonzero(free & ~one)
            joints = joints[np.argsort(multipliers[joints, 0])]  # in the order of multipliers, independent of lanes
            self._block[multipliers[joints]] = (count + np.arange(joints.size))[:, None]
            count += joints.size
        order = np.argsort(self._block, kind="stable")
        sizes = np.bincount(self._block, minlength=count)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self._position = np.empty(pieces.size, dtype=np.int64)
        self._position[order] = np.arange(pieces.size) - starts[self._block[order]]
        self.unknowns = [order[a:b].tolist() for a, b in itertools.pairwise(starts)]
        kinds = pieces.multiplier.astype(int)
        self._kinds = [tuple(kinds[own].tolist()) for own in self.unknowns]

    def _elements(self) -> None:
        """Collect the contributions of the elements, which come first."""
        assembly = self._assembly
        self.sources: list[Source] = []
        self._signatures: dict[tuple[object, ...], Signature] = {}
        self._at_block: list[list[tuple[int, int]]] = [[] for _ in self.unknowns]  # (contribution, local block)
        for i, kernel in enumerate(assembly.kernels):
            piece = kernel.piece
            if not piece.pattern:
                continue
            places = assembly.bases[i, 0] + in_pool(np.arange(piece.count), kernel.outputs)
            blocks, positions = self._block[piece.x].tolist(), self._position[piece.x].tolist()
            row_blocks, row_positions = self._of_equations(piece.equations)
            known: dict[tuple[object, ...], Signature] = {}
            for e in range(piece.count):
                roles = list(dict.fromkeys(blocks[e]))
                number = {block: role for role, block in enumerate(roles)}
                columns = tuple((number[b], a) for b, a in zip(blocks[e], positions[e], strict=True))
                rows = tuple(
                    (number[b] if b >= 0 else -1, a) for b, a in zip(row_blocks[e], row_positions[e], strict=True)
                )
                key = columns, rows
                if key not in known:
                    entries = tuple(
                        (*rows[row], *columns[column], kernel.row_count + a)
                        for a, (row, column) in enumerate(piece.pattern)
                        if rows[row][0] >= 0
                    )
                    known[key] = self._signature(entries, (), len(roles))
                self._add(Source(known[key], tuple(roles), int(places[e]), trial=int(places[e])))

    def _of_equations(self, equations: np.ndarray) -> tuple[list[list[int]], list[list[int]]]:
        left_out = equations < 0
        block = np.where(left_out, -1, self._block[np.where(left_out, 0, equations)])
        position = np.where(left_out, -1, self._position[np.where(left_out, 0, equations)])
        return block.tolist(), position.tolist()

    def _signature(
        self,
        entries: tuple[tuple[int, int, int, int, int], ...],
        right: tuple[tuple[int, int, int], ...],
        roles: int,
    ) -> Signature:
        """Return a unique object for equal contribution patterns."""
        key = entries, right, roles
        if key not in self._signatures:
            self._signatures[key] = Signature(len(self._signatures), *key)
        return self._signatures[key]

    def _add(self, source: Source) -> None:
        number = len(self.sources)
        self.sources.append(source)
        for role, block in enumerate(source.blocks):
            self._at_block[block].append((number, role))

    def _joints_of_trees(self) -> None:
        """Match every joint of a tree with a body by removing leaves; then its Schur complement is definite."""
        count = len(self.unknowns)
        self._match: dict[int, int] = {}
        self._irregular = False
        if count - self.bodies >= self.bodies:
            return
        ends: dict[int, set[int]] = defaultdict(set)
        for source in self.sources:
            joints = [b for b in source.blocks if b >= self.bodies]
            for joint in joints:
                ends[joint] |= {b for b in source.blocks if b < self.bodies}
        at: dict[int, set[int]] = defaultdict(set)
        for joint, bodies in ends.items():
            for body in bodies:
                at[body].add(joint)
        self._irregular = len({len(joints) for joints in at.values()}) > _REGULAR
        # a body with constraints on itself may have no degree of freedom left for a joint
        free = [not any(self._kinds[b]) or 2 * sum(self._kinds[b]) <= len(self._kinds[b]) for b in range(self.bodies)]
        leaves = [b for b in range(self.bodies) if len(at[b]) == 1 and free[b]]
        match: dict[int, int] = {}
        while leaves:
            body = leaves.pop()
            if len(at[body]) != 1:
                continue
            joint = at[body].pop()
            match[joint] = body
            for other in ends[joint]:
                at[other].discard(joint)
                if len(at[other]) == 1 and free[other]:
                    leaves.append(other)
        if len(match) == count - self.bodies:
            self._match = match

    def _lanes(self) -> None:
        """Assign SIMD lanes: the lane key of a front is that of its body, or of the body of its joint."""
        keys = lane_keys(self.bodies)
        self._lane = keys.tolist() + [len(keys)] * (len(self.unknowns) - self.bodies)
        for source in self.sources:
            first = min(source.blocks)
            if first < self.bodies:
                for block in source.blocks:
                    if block >= self.bodies:
                        self._lane[block] = min(self._lane[block], self._lane[first])

    # -- levels -------------------------------------------------------------------------------------------------------
    def _rank(self, source: tuple[int, int]) -> tuple[object, ...]:
        """Return the sort key of a contribution at a block: pattern first, then the bodies it belongs to."""
        number, role = source
        found = self.sources[number]
        return found.signature.number, role, found.blocks, number

    def _front(self, block: int) -> _Found:
        """Return boundary, contributions in canonical order, and their indices."""
        bound: dict[int, int] = {}
        numbers: list[int] = []
        shape = []
        own = sorted(self._at_block[block], key=self._rank)
        for number, role in own:
            source = self.sources[number]
            local = [-1] * len(source.blocks)
            for other in source.signature.couplings[role]:
                there = source.blocks[other]
                if there != block and self._alive[there]:
                    local[other] = bound.setdefault(there, len(bound))
            shape.append((source.signature, role, tuple(local)))
            numbers.append(number)
        return list(bound), tuple(shape), numbers

    def _rounds(self) -> None:
        count = len(self.unknowns)
        sizes = [len(own) for own in self.unknowns]
        self._alive = [True] * count
        ready = [b < self.bodies for b in range(count)]
        known: dict[tuple[object, ...], FrontClass] = {}
        remaining, dirty = list(range(count)), set(range(count))
        found: dict[int, _Found] = {}
        cost: dict[int, int] = {}
        refused: set[int] = set()
        code = _CODE + _CODE_PER_UNKNOWN * sum(sizes)
        core = min(max(_SMALL_CORE, sum(sizes) // _UNKNOWNS_PER_CORE), _LARGE_CORE)
        while remaining:
            for b in dirty:
                if self._alive[b]:
                    found[b] = self._front(b)
                    cost[b] = sum(sizes[x] for x in found[b][0])
            refused -= dirty
            dirty = set()
            able = [b for b in remaining if ready[b] and b not in refused and cost[b] + sizes[b] <= self._largest]
            left = sum(sizes[b] for b in remaining)
            if not able or len(self.classes) > _MOST_CLASSES or left <= core:
                break
            chosen = self._leaves(able, found, len(remaining)) or _cheapest(able, found, cost)
            groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
            planned, taken_over = self._taken_over(chosen, found)
            for b in chosen:
                bound, shape, _ = planned[b]
                ids = tuple((s.number, role, local) for s, role, local in shape)
                groups[self._kinds[b], ids, tuple(sizes[x] for x in bound)].append(b)
            if 2 * len(groups) > len(chosen) and sum(made.products for made in self.classes) > code:
                break  # nearly every front has its own structure
            gone: set[int] = set()
            for key, members in groups.items():
                members.sort(key=lambda b: (self._lane[b], b))
                gone |= self._eliminate(key, members, planned, known, refused)
            if not gone and not (set(able) - refused):
                break
            for b in gone:
                self._alive[b] = False
                for x in found[b][0]:
                    dirty.add(x)
                    if x >= self.bodies and not ready[x]:
                        ready[x] = self._match[x] == b if self._match else True
            remaining = [b for b in remaining if self._alive[b]]
            for b in gone:
                for x, source in taken_over[b]:
                    self._at_block[x].remove(source)
            for x in dirty:
                self._at_block[x] = [s for s in self._at_block[x] if self._matters(x, *s)]
            self.rounds += 1
        self._core_blocks = remaining

    def _leaves(self, able: list[int], found: dict[int, _Found], remaining: int) -> list[int]:
        """Return leaves of an irregular tree, at most one per neighbour, if there are many leaves.

        The other leaves follow in the next level and absorb the contribution of this one. All bodies then have the
        same structure, independent of the number of leaves.
        """
        hanging = [b for b in able if len(found[b][0]) <= 1] if self._match and self._irregular else []
        if _FEW_LEAVES * len(hanging) < remaining:
            return []
        served: set[int] = set()
        chosen = []
        for b in hanging:
            if b not in served and not served.intersection(found[b][0]):
                chosen.append(b)
                served.update(found[b][0])
        return chosen if _SHARED_LEAVES * len(chosen) >= len(hanging) else []

    def _taken_over(
        self, chosen: list[int], found: dict[int, _Found]
    ) -> tuple[dict[int, _Found], dict[int, list[tuple[int, tuple[int, int]]]]]:
        """Return the fronts of a level, and the contributions absorbed from their boundaries.

        The first front of a level absorbs contributions of earlier fronts to a boundary block alone. The number of
        contributions of a block then stays constant, and the fronts of all levels have the same structure.
        """
        planned: dict[int, _Found] = {}
        taken: dict[int, list[tuple[int, tuple[int, int]]]] = {}
        served: set[int] = set()
        for b in chosen:
            bound, shape, numbers = found[b]
            taken[b], more = [], []
            for place, x in enumerate(bound):
                if x in served:
                    continue
                served.add(x)
                for number, role in self._at_block[x]:
                    source = self.sources[number]
                    others = [other for other in source.blocks if other not in (x, b)]
                    joined = source.of is not None or len(source.blocks) > 1
                    if joined and not any(self._alive[other] for other in others):
                        taken[b].append((x, (number, role)))
                        local = tuple(place if i == role else -1 for i in range(len(source.blocks)))
                        more.append((place, self._rank((number, role)), number, (source.signature, -1, local)))
            more.sort(key=lambda found: found[:2])
            planned[b] = bound, (*shape, *(one[-1] for one in more)), [*numbers, *(one[2] for one in more)]
        return planned, taken

    def _matters(self, block: int, number: int, role: int) -> bool:
        """Return True if a contribution still couples a block to an active block, or has a right-hand side."""
        source = self.sources[number]
        near = source.signature.couplings[role]
        return role in source.signature.pushed or any(self._alive[source.blocks[other]] for other in near)

    def _eliminate(
        self,
        key: tuple[object, ...],
        members: list[int],
        found: dict[int, _Found],
        known: dict[tuple[object, ...], FrontClass],
        refused: set[int],
    ) -> set[int]:
        """Eliminate fronts of one structure; fronts with vanishing pivots are rejected and wait."""
        made = known.get(key)
        if made is None:
            made = FrontClass(Shape(self._kinds[members[0]], found[members[0]][1], key[2]))  # type: ignore[arg-type]
        where = np.array([[self.sources[s].trial for s in found[b][2]] for b in members])
        strides = [WIDTH if self.sources[s].of is None else 1 for s in found[members[0]][2]]
        A = made.assembled(self._trial, where.reshape(len(members), -1), strides)
        try:
            good = made.eliminated(A)
        except NoPivotError:
            good = np.zeros(len(members), dtype=bool)
        most = min(_MOST_PRODUCTS, _FEW_PRODUCTS + _PRODUCTS_PER_FRONT * len(members))
        if made.order and key not in known and made.products > most:
            good[:] = False
        refused |= {b for b, fine in zip(members, good, strict=True) if not fine}
        if not good.any():
            return set()
        if key not in known:
            known[key] = made
            made.number = len(self.classes)
            self.classes.append(made)
            made.signature = self._signature(*made.offered)
        assert made.signature is not None
        number = made.number
        fronts = self.fronts[number]
        first = len(fronts)
        members = [b for i, b in enumerate(members) if good[i]]
        values = np.zeros((len(members), made.outputs))
        for slot, (i, j) in enumerate(made.updates):
            values[:, slot] = A[good, i, j]
        own = [
            Front(found[b][2], self.unknowns[b], [u for x in found[b][0] for u in self.unknowns[x]]) for b in members
        ]
        slots, places = in_whole_vectors([self._lane[b] for b in members])
        fronts += [own[i] for i in slots]
        for i, b in enumerate(members):
            if found[b][0]:
                at = self._trial_size + i * made.outputs
                self._add(Source(made.signature, tuple(found[b][0]), first + places[i], made, at))
        self._remember(values.ravel())
        self.batches.append(Batch(made, first // WIDTH, len(fronts) // WIDTH, self.rounds))
        return set(members)

    def _remember(self, values: np.ndarray) -> None:
        """Append the sample values of eliminated fronts."""
        stop = self._trial_size + values.size
        if stop > self._trial.size:
            self._trial = np.concatenate([self._trial, np.zeros(stop)])
        self._trial[self._trial_size : stop] = values
        self._trial_size = stop

    # -- memory layout ------------------------------------------------------------------------------------------------
    def _place(self) -> None:
        top, factors = int(self._assembly.tops[0]), 0
        for number, made in enumerate(self.classes):
            self.bases[id(made)], self.factor_bases[id(made)] = top, factors
            top += len(self.fronts[number]) * made.outputs
            factors += len(self.fronts[number]) * made.factors
        self.pool_size, self.factor_size = top, factors
        place = np.array([self._pool_place(source) for source in self.sources], dtype=np.int64)
        for number in range(len(self.classes)):
            sources = np.array([place[front.sources] for front in self.fronts[number]], dtype=np.int32)
            unknowns = np.array([[*front.own, *front.boundary] for front in self.fronts[number]], dtype=np.int32)
            rows = self._assembly.row_sums.places[unknowns[:, : self.classes[number].p]].astype(np.int32)
            self.tables.append(in_blocks(self.classes[number].table(sources, rows, unknowns)))
        self._part()
        for made, table in zip(self.classes, self.tables, strict=True):
            self.batches = in_stretches(self.batches, made, table)
        self.core = self._core(place)
        #: Code size of the classes in flops, and average number of fronts per class.
        self.code = sum(made.products for made in self.classes)
        self.reuse = (len(self.unknowns) - len(self._core_blocks)) / max(len(self.classes), 1)
        self.products = float(sum(made.products * len(self.fronts[n]) for n, made in enumerate(self.classes)))
        self.fronts.clear()
        self._trial = np.zeros(0)

    def _part(self) -> None:
        """Assign the blocks of element batches, sums and fronts to tiles."""
        assembly, sweep = self._assembly, Sweep(self.pool_size)
        for kernel, base in zip(assembly.kernels, assembly.bases[:, 0].tolist(), strict=True):
            sweep.write(base, kernel.outputs, sweep.in_order(-(-kernel.piece.count // WIDTH)))
        sums = assembly.row_sums
        of_sums = [sweep.behind(batch.positions) for batch in sums.batches]
        of_rows = np.zeros(sums.rows.size // WIDTH, dtype=np.int64)
        for rows, parts in zip(sums.batches, of_sums, strict=True):
            of_rows[rows.first // WIDTH : rows.first // WIDTH + parts.size] = parts
        of_fronts = [np.zeros(len(table), dtype=np.int64) for table in self.tables]
        for batch in self.batches:
            made, blocks = batch.of, slice(batch.first, batch.stop)
            table = self.tables[made.number][blocks]
            rights = np.concatenate([table[:, slot] + offset for slot, offset in made.rights], axis=1)
            ready = np.stack([sweep.behind(table[:, : made.source_count]), in_turn(of_rows[rights // WIDTH])], axis=1)
            of_fronts[made.number][blocks] = parts = in_turn(ready)
            sweep.write(self.bases[id(made)] + batch.first * WIDTH * made.outputs, made.outputs, parts)
        self.sweep, self.of_sums, self.of_fronts = sweep, of_sums, of_fronts

    def _pool_place(self, source: Source) -> int:
        if source.of is None:
            return source.place
        outputs = source.of.outputs
        return self.bases[id(source.of)] + int(in_pool(np.array([source.place]), outputs)[0])

    def _core(self, place: np.ndarray) -> Core:
        blocks = self._core_blocks
        unknowns = [u for b in blocks for u in self.unknowns[b]]
        at = {u: i for i, u in enumerate(unknowns)}
        entries: list[tuple[int, int, int]] = []
        right: list[tuple[int, int]] = []
        seen: set[int] = set()
        for b in blocks:
            for number, _ in self._at_block[b]:
                if number in seen:
                    continue
                seen.add(number)
                source = self.sources[number]
                alive = [self._alive[x] for x in source.blocks]
                own = [self.unknowns[x] for x in source.blocks]
                for i, a, j, c, slot in source.signature.entries:
                    if alive[i] and alive[j]:
                        entries.append((at[own[i][a]], at[own[j][c]], int(place[number]) + slot * WIDTH))
                for i, a, slot in source.signature.right:
                    if alive[i]:
                        right.append((at[own[i][a]], int(place[number]) + slot * WIDTH))
        rows, columns, positions = np.array(entries, dtype=np.int64).reshape(-1, 3).T.copy()
        targets, right_positions = np.array(right, dtype=np.int64).reshape(-1, 2).T.copy()
        return Core(np.array(unknowns, dtype=np.int64), rows, columns, positions, targets, right_positions)


def _cheapest(able: list[int], found: dict[int, _Found], cost: dict[int, int]) -> list[int]:
    """Return mutually uncoupled blocks with small boundaries (minimum degree)."""
    smallest = min(cost[b] for b in able)
    blocked: set[int] = set()
    chosen = []
    for b in able:
        if cost[b] <= max(_TOLERANCE * smallest, smallest + _MORE) and b not in blocked:
            chosen.append(b)
            blocked.update(found[b][0])
    return chosen
