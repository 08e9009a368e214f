"""Armatures of the tree tier: rotors whose coordinate is the angle or the displacement of a joint.

The rotor of inertia I has the momentum kappa, with ``(kappa0 + kappa1)/2 = I dtheta/h``. Half an angle increment is
``atan(tau)``, and the power of the joint force is ``(kappa1 - kappa0)/h dtheta/h``.
"""

from __future__ import annotations

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import atan
from livens.engine.trees.records import (
    ARMATURE,
    ARMATURE_FORCE,
    ARMATURE_MOMENTUM,
    ARMATURE_TAU,
    PRISMATIC,
    STRIDE,
    TAU,
    TreeArrays,
)

#: Largest joint unknown for which ``atan(tau)/tau`` is a sum of seven terms, exact to round-off.
SERIES_LIMIT = 0.05


@lowered
def _angle_ratio(tau: float) -> float:
    """Return ``atan(tau)/tau``."""
    s = tau * tau
    ratio = 1.0 - s * (1 / 3 - s * (1 / 5 - s * (1 / 7 - s * (1 / 9 - s * (1 / 11 - s * (1 / 13))))))
    if abs(tau) > SERIES_LIMIT:
        ratio = atan(tau) / tau if abs(tau) > SERIES_LIMIT else ratio  # tested by lane
    return ratio


@lowered
def _angle_ratio_slope(tau: float, ratio: float) -> float:
    """Return the derivative of ``atan(tau)/tau``."""
    s = tau * tau
    series = -2.0 * tau * (1 / 3 - s * (2 / 5 - s * (3 / 7 - s * (4 / 9 - s * (5 / 11 - s * (6 / 13))))))
    return (1.0 / (1.0 + s) - ratio) / tau if abs(tau) > SERIES_LIMIT else series


@lowered
def half_increment(t: TreeArrays, i: int) -> float:
    """Return half the increment of the joint coordinate of one body."""
    tau = (t.records + i * STRIDE)[TAU]
    if t.joint_type[i] == PRISMATIC:
        return tau
    return tau * _angle_ratio(tau)


@lowered
def evaluate_armature(t: TreeArrays, i: int) -> None:
    """Evaluate the joint force of the armature, times h^2/4, and its derivative by the joint unknown."""
    b = t.records + i * STRIDE
    tau, armature, momentum = b[TAU], b[ARMATURE], b[ARMATURE_MOMENTUM]
    if t.joint_type[i] == PRISMATIC:
        b[ARMATURE_FORCE], b[ARMATURE_TAU] = momentum - armature * tau, -armature
    else:
        ratio = _angle_ratio(tau)
        change = momentum - armature * tau * ratio  # h/4 times that of the momentum, with the opposite sign
        b[ARMATURE_FORCE] = change * ratio
        b[ARMATURE_TAU] = change * _angle_ratio_slope(tau, ratio) - armature * ratio / (1.0 + tau * tau)
