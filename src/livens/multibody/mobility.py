"""Mobility report: degrees of freedom, redundant constraints, and initial values reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from livens.errors import abbreviate
from livens.models.disjoint_sets import DisjointSets
from livens.models.linalg import SOLVED_RTOL, numerical_rank
from livens.models.system import System
from livens.multibody.assembly import Assembly
from livens.multibody.body_constraint import BodyConstraint
from livens.scene import html

#: Width of the labels of the report.
_LABEL_WIDTH = 17
#: Largest number of computed initial values in the text of a report.
_MAX_COMPUTED = 6


@dataclass(frozen=True)
class MobilityReport:
    """Mobility report, returned by `Multibody.check`."""

    bodies: int
    constraints: int
    rank: int  # of the constraint Jacobian at a generic configuration
    rank_at_start: int
    mobility: int
    gruebler_count: int  # mobility by the Gruebler count
    #: Elements with indeterminate reactions, because their constraints are linearly dependent.
    indeterminate_reactions: tuple[str, ...]
    targets: tuple[tuple[str, float, float], ...]
    #: Loop-closing joints; the last joint of each loop in the order of definition.
    loops: tuple[str, ...] = ()
    #: Import warnings.
    import_warnings: tuple[str, ...] = ()
    #: Names of the drives, whose constraints are counted like those of joints.
    drives: tuple[str, ...] = ()
    #: Initial values that are not zero and not given: name and value of joint coordinates and rates.
    computed: tuple[tuple[str, float], ...] = ()

    @property
    def redundant(self) -> int:
        """Number of redundant constraints."""
        return self.constraints - self.rank

    def __str__(self) -> str:
        lines = [
            f"bodies           {self.bodies}",
            f"constraints      {self.constraints}, of rank {self.rank}",
            f"mobility         {self.mobility} by rank, {self.gruebler_count} by Gruebler's count",
        ]
        if not self.mobility:
            lines.append(
                f"mobility         the motion is prescribed by {', '.join(self.drives)}"
                if self.drives
                else "mobility         no motion: as many independent constraints as degrees of freedom"
            )
        if self.loops:
            lines.append(f"loops            {len(self.loops)}, closed by {', '.join(self.loops)}")
        if self.rank_at_start < self.rank:
            lines.append(f"start            singular configuration, of rank {self.rank_at_start}")
        if self.redundant:
            lines.append(
                f"redundant        {self.redundant}; indeterminate reactions: {', '.join(self.indeterminate_reactions)}"
            )
        lines += [
            f"start            {name} = {reached:.6g} (target {asked:.6g})" for name, asked, reached in self.targets
        ]
        if self.computed:
            computed = abbreviate([f"{name} = {value:.6g}" for name, value in self.computed], _MAX_COMPUTED)
            lines.append(f"start            computed, as no value is given: {computed}")
        lines += [f"note             {note}" for note in self.import_warnings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the report as a table for notebooks."""
        rows: dict[str, str] = {}
        for line in str(self).splitlines():
            label, text = line[:_LABEL_WIDTH].strip(), line[_LABEL_WIDTH:]
            rows[label] = f"{rows[label]}; {text}" if label in rows else text
        return html.definition_table(rows)


def mobility_report(system: System, assembly: Assembly, joints: Mapping[str, BodyConstraint]) -> MobilityReport:
    """Return the mobility report, with ranks at the initial and at a generic configuration."""
    jacobian = assembly.normalised_constraint_jacobian(assembly.generic_configuration())
    rank, null_rows = _rank(jacobian)
    at_start, _ = _rank(assembly.normalised_constraint_jacobian(assembly.position))
    owners = [system.constraint_names[i].rsplit(":", 1)[0] for i in assembly.twist.joint_constraints]
    involved = np.abs(null_rows).max(axis=0) > 1e-6 if len(null_rows) else np.zeros(len(owners), dtype=bool)
    n_twists = assembly.twist.size
    return MobilityReport(
        bodies=len(assembly.bodies),
        constraints=len(owners),
        rank=rank,
        rank_at_start=at_start,
        mobility=n_twists - rank,
        gruebler_count=n_twists - len(owners),
        indeterminate_reactions=tuple(
            dict.fromkeys(name for name, is_involved in zip(owners, involved, strict=True) if is_involved)
        ),
        targets=tuple(assembly.target_report()),
        computed=tuple(assembly.computed_values(joints.values(), n_twists - rank)),
        loops=tuple(loop_closing_joints(joints)),
    )


def loop_closing_joints(joints: Mapping[str, BodyConstraint]) -> list[str]:
    """Return the loop-closing joints: those between bodies that other joints already connect."""
    connected = DisjointSets[str]()
    return [joint.name for joint in joints.values() if not connected.union(joint.body_a.name, joint.body_b.name)]


def _rank(jacobian: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the rank and a basis of the left null space."""
    if not jacobian.size:
        return 0, np.zeros((0, 0))
    u, singular_values, _ = np.linalg.svd(jacobian)
    rank = numerical_rank(singular_values, SOLVED_RTOL)
    return rank, u[:, rank:].T
