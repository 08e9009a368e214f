"""What a mechanism can do: mobility, redundant constraints, and whether its start was reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from livens.models.system import System
from livens.multibody.assembly import Assembly
from livens.multibody.connection import Connection


@dataclass(frozen=True)
class Report:
    """The answer of `Multibody.check`."""

    bodies: int
    constraints: int
    rank: int  # of the constraints at a generic position
    rank_at_start: int
    mobility: int
    gruebler: int  # the mobility by counting alone
    #: Elements whose single reactions are not determined, as their constraints depend on one another.
    undetermined: tuple[str, ...]
    targets: tuple[tuple[str, float, float], ...]
    #: Joints that close a loop, each the last one of its loop to be drawn.
    loops: tuple[str, ...] = ()
    #: What was not taken over from the file that the mechanism was read from.
    notes: tuple[str, ...] = ()

    @property
    def redundant(self) -> int:
        """How many constraints follow from others."""
        return self.constraints - self.rank

    def __str__(self) -> str:
        lines = [
            f"bodies           {self.bodies}",
            f"constraints      {self.constraints}, of rank {self.rank}",
            f"mobility         {self.mobility} by rank, {self.gruebler} by Gruebler's count",
        ]
        if not self.mobility:
            lines.append("mobility         nothing can move: there are as many independent constraints as freedoms")
        if self.loops:
            lines.append(f"loops            {len(self.loops)}, closed by {', '.join(self.loops)}")
        if self.rank_at_start < self.rank:
            lines.append(f"start            a singular position, of rank {self.rank_at_start}")
        if self.redundant:
            lines.append(f"redundant        {self.redundant}; not unique: reactions of {', '.join(self.undetermined)}")
        lines += [
            f"start            {name} = {reached:.6g} (asked for {asked:.6g})" for name, asked, reached in self.targets
        ]
        lines += [f"note             {note}" for note in self.notes]
        return "\n".join(lines)


def report(system: System, assembly: Assembly, joints: Mapping[str, Connection]) -> Report:
    """Ranks by singular values, at the start and at a position with nothing special about it."""
    rows = assembly.joint_rows(assembly.generic())
    rank, left = _rank(rows)
    at_start, _ = _rank(assembly.joint_rows(assembly.position))
    owners = [system.constraint_names[i].rsplit(":", 1)[0] for i in assembly.motion.constraints]
    involved = np.abs(left).max(axis=0) > 1e-6 if len(left) else np.zeros(len(owners), dtype=bool)
    free = assembly.motion.size
    return Report(
        bodies=len(assembly.parts),
        constraints=len(owners),
        rank=rank,
        rank_at_start=at_start,
        mobility=free - rank,
        gruebler=free - len(owners),
        undetermined=tuple(dict.fromkeys(name for name, one in zip(owners, involved, strict=True) if one)),
        targets=tuple(assembly.reached()),
        loops=tuple(closing(joints)),
    )


def closing(joints: Mapping[str, Connection]) -> list[str]:
    """The joints between parts that other joints connect already."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    found = []
    for joint in joints.values():
        ends = [find(part.name) for part in (joint.first, joint.second)]
        if ends[0] == ends[1]:
            found.append(joint.name)
        root[ends[0]] = ends[1]
    return found


def _rank(rows: np.ndarray) -> tuple[int, np.ndarray]:
    """The rank, and the combinations of rows that vanish."""
    if not rows.size:
        return 0, np.zeros((0, 0))
    u, sizes, _ = np.linalg.svd(rows)
    rank = int((sizes > 1e-7 * sizes[0]).sum())
    return rank, u[:, rank:].T
