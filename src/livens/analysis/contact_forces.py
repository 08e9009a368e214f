"""Contact forces, in newtons, with their points of application."""

from __future__ import annotations

import dataclasses

from livens.analysis.reaction_forces import PointForce, to_3d
from livens.analysis.signals import evaluate_quantity
from livens.models.system import System
from livens.results.result import Result

#: Maximum number of contacts that are evaluated.
_MAX_CONTACTS = 200


def contact_forces(result: Result) -> list[PointForce]:
    """Return the contact forces on the second body of each pair, or on the first if the second is the ground.

    >>> import livens as lv
    >>> (floor,) = contact_forces(lv.simulate(lv.problems.load("bouncing-ball"), t_end=0.4))
    >>> floor.name, floor.body, bool(floor.force[:, 2].min() >= 0.0), bool(floor.force[:, 2].max() > 1.0)
    ('floor', 'ball', True, True)
    """
    has_system = result._system is not None or result.info.problem is not None
    if not has_system or not {"q", "v"} <= set(result.stored) or not isinstance(result.system, System):
        return []
    point_forces: list[PointForce] = []
    for name, quantity in result.system.quantities.items():
        acts = quantity.applied
        if acts is None or len(point_forces) >= _MAX_CONTACTS:
            continue
        point, force = (
            to_3d(evaluate_quantity(result, each))
            for each in (dataclasses.replace(quantity, expression=acts.at), quantity)
        )
        on_ground = acts.on == "ground"
        point_forces.append(
            PointForce(
                name.rpartition(".")[0], acts.by if on_ground else acts.on, point, -force if on_ground else force
            )
        )
    return point_forces
