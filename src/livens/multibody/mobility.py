"""Mobility report: degrees of freedom, redundant constraints, and initial values reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from livens.models.system import System
from livens.multibody.assembly import Assembly
from livens.multibody.connection import Connection


@dataclass(frozen=True)
class Report:
    """Mobility report, returned by `Multibody.check`."""

    bodies: int
    constraints: int
    rank: int  # of the constraint Jacobian at a generic configuration
    rank_at_start: int
    mobility: int
    gruebler: int  # mobility by the Gruebler count
    #: Elements with indeterminate reactions, because their constraints are linearly dependent.
    undetermined: tuple[str, ...]
    targets: tuple[tuple[str, float, float], ...]
    #: Loop-closing joints; the last joint of each loop in the order of definition.
    loops: tuple[str, ...] = ()
    #: Import warnings.
    notes: tuple[str, ...] = ()

    @property
    def redundant(self) -> int:
        """Number of redundant constraints."""
        return self.constraints - self.rank

    def __str__(self) -> str:
        lines = [
            f"bodies           {self.bodies}",
            f"constraints      {self.constraints}, of rank {self.rank}",
            f"mobility         {self.mobility} by rank, {self.gruebler} by Gruebler's count",
        ]
        if not self.mobility:
            lines.append("mobility         no motion: as many independent constraints as degrees of freedom")
        if self.loops:
            lines.append(f"loops            {len(self.loops)}, closed by {', '.join(self.loops)}")
        if self.rank_at_start < self.rank:
            lines.append(f"start            singular configuration, of rank {self.rank_at_start}")
        if self.redundant:
            lines.append(
                f"redundant        {self.redundant}; indeterminate reactions: {', '.join(self.undetermined)}"
            )
        lines += [
            f"start            {name} = {reached:.6g} (target {asked:.6g})" for name, asked, reached in self.targets
        ]
        lines += [f"note             {note}" for note in self.notes]
        return "\n".join(lines)


def report(system: System, assembly: Assembly, joints: Mapping[str, Connection]) -> Report:
    """Return the mobility report, with ranks at the initial and at a generic configuration."""
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
    """Return the loop-closing joints: those between bodies that other joints already connect."""
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
    """Return the rank and a basis of the left null space."""
    if not rows.size:
        return 0, np.zeros((0, 0))
    u, sizes, _ = np.linalg.svd(rows)
    rank = int((sizes > 1e-7 * sizes[0]).sum())
    return rank, u[:, rank:].T
