"""Contact forces, in newtons, with their points of application."""

from __future__ import annotations

import dataclasses

from livens.analysis.joint_forces import PointForce, in_space
from livens.analysis.named import evaluated
from livens.models.system import System
from livens.results.result import Result

#: Maximum number of contacts that are evaluated.
_MOST = 200


def contact_forces(result: Result) -> list[PointForce]:
    """Return the contact forces on the second body of each pair, or on the first if the second is the ground.

    >>> import livens as lv
    >>> (floor,) = contact_forces(lv.simulate(lv.problems.load("bouncing-ball"), t_end=0.4))
    >>> floor.name, floor.body, bool(floor.force[:, 2].min() >= 0.0), bool(floor.force[:, 2].max() > 1.0)
    ('floor', 'ball', True, True)
    """
    known = result._system is not None or result.facts.problem is not None
    if not known or not {"q", "v"} <= set(result.stored) or not isinstance(result.system, System):
        return []
    found: list[PointForce] = []
    for name, quantity in result.system.quantities.items():
        acts = quantity.acts
        if acts is None or len(found) >= _MOST:
            continue
        at, force = (
            in_space(evaluated(result, each)) for each in (dataclasses.replace(quantity, expression=acts.at), quantity)
        )
        turned = acts.on == "ground"
        found.append(
            PointForce(name.rpartition(".")[0], acts.by if turned else acts.on, at, -force if turned else force)
        )
    return found
