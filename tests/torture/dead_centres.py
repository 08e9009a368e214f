"""Slider-cranks and four-bar linkages through their dead centres, close to where the branches of their motion meet.

No linkage here can change its branch: which side of the line through its ends the coupler's pin is on never changes.
A step that is too long may jump over. Then the run must fail, or say that it is not resolved.
"""

from __future__ import annotations

import functools
import math
import random

import numpy as np

import livens as lv
from torture.findings import Findings

SCHEMES = ("livens-em", "livens-midpoint", "radau-iia-2", "lobatto-iiia-iiib-2", "ggl-em", "murua-ggl-1")


def _slider_crank() -> lv.System:
    """Return a slider-crank: crank of length r with its pin at (x, y), rod of length l to a slider at (s, 0)."""
    return lv.System(
        "x y s",
        kinetic=lambda v, k: (k.wheel * (v[0] ** 2 + v[1] ** 2) + k.slider * v[2] ** 2) / 2,
        constraints=lambda q, k: [
            (q[0] ** 2 + q[1] ** 2 - k.r**2) / 2,
            ((q[2] - q[0]) ** 2 + q[1] ** 2 - k.l**2) / 2,
        ],
        parameters=dict(wheel=1.0, slider=1.0, r=1.0, l=2.0),
    )


def _four_bar() -> lv.System:
    """Return a four-bar linkage: crank of length a at the origin, coupler b, rocker c to the fixed point (d, 0)."""
    return lv.System(
        "x y u w",
        kinetic=lambda v, k: (k.wheel * (v[0] ** 2 + v[1] ** 2) + k.slider * (v[2] ** 2 + v[3] ** 2)) / 2,
        constraints=lambda q, k: [
            (q[0] ** 2 + q[1] ** 2 - k.a**2) / 2,
            ((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - k.b**2) / 2,
            ((q[2] - k.d) ** 2 + q[3] ** 2 - k.c**2) / 2,
        ],
        parameters=dict(wheel=1.0, slider=1.0, a=1.0, b=3.0, c=3.0, d=3.5),
    )


@functools.cache
def prepared(kind: str, scheme: str) -> lv.run.prepare.Prepared:
    return lv.prepare(_slider_crank() if kind == "slider-crank" else _four_bar(), scheme=scheme, h=0.01)


def linkage(chance: random.Random, kind: str) -> tuple[dict[str, float], list[float], list[float]]:
    """Return lengths, masses and initial values; the distance of the branches varies over decades."""
    margin = 10 ** chance.uniform(-4, -0.3)
    masses = dict(wheel=10 ** chance.uniform(-1, 2), slider=10 ** chance.uniform(-2, 1))
    speed = chance.choice((-1, 1)) * chance.uniform(0.5, 2.0)
    if kind == "slider-crank":
        # the rod is longer than the crank: the slider stays on its side of the pin
        lengths = dict(r=1.0, l=1 + margin)
        return {**masses, **lengths}, [1.0, 0.0, 2.0 + margin], [0.0, speed, 0.0]
    # Grashof: the shortest and the longest together are shorter than the two others, so the crank goes round
    a, d = 1.0, chance.uniform(2.5, 3.5)
    b = chance.uniform(2.5, 3.5)
    c = max(a + d - b, a + b - d, a) + margin if chance.random() < 0.5 else d + b - a - margin
    if not (a + max(b, c, d) < b + c + d - max(b, c, d) and a < min(b, c, d)):
        c = a + max(b, d) - min(b, d) + margin
    angle = chance.uniform(0, 2 * math.pi)
    x, y = a * math.cos(angle), a * math.sin(angle)
    far = math.hypot(d - x, -y)
    along = (far**2 + b**2 - c**2) / (2 * far)
    side = chance.choice((-1, 1)) * math.sqrt(max(b**2 - along**2, 0.0))
    ex, ey = (d - x) / far, -y / far
    u, w = x + along * ex - side * ey, y + along * ey + side * ex
    lengths = dict(a=a, b=b, c=c, d=d)
    return {**masses, **lengths}, [x, y, u, w], [-speed * y, speed * x, 0.0, 0.0]


def side(kind: str, q: np.ndarray, k: dict[str, float]) -> np.ndarray:
    """Return numbers whose signs are the branches of rows."""
    if kind == "slider-crank":
        return q[:, 2] - q[:, 0]
    return (q[:, 2] - q[:, 0]) * (q[:, 3]) - (q[:, 3] - q[:, 1]) * (q[:, 2] - k["d"])


def run(seed: int, first: int, count: int) -> Findings:
    findings = Findings()
    for number in range(first, first + count):
        chance = random.Random(f"linkage {seed} {number}")
        kind, scheme = chance.choice(("slider-crank", "four-bar")), chance.choice(SCHEMES)
        k, q0, v0 = linkage(chance, kind)
        h = 10 ** chance.uniform(-3, -0.7)
        findings.counts["linkages"] += 1
        step = prepared(kind, scheme)
        try:
            run = step.run(q0, v0, parameters=k, h=h, t_end=20.0, project=True)
        except lv.IntegrationError as error:
            findings.counts["that stopped with a reason"] += 1
            run = error.result
        except lv.InputError as error:
            findings.counts["refused at the start"] += 1
            findings.measure("refused, margin", 0.0)
            if not str(error):
                findings.fault(number, "refused without a word")
            continue
        branch = np.sign(side(kind, run.q, k))
        dead = run.q[:, 1] if kind == "slider-crank" else run.q[:, 0] * run.q[:, 3] - run.q[:, 1] * run.q[:, 2]
        findings.counts["dead centres passed"] += int(np.count_nonzero(np.diff(np.sign(dead))))
        if np.all(branch == branch[0]):
            findings.counts["that kept their branch"] += 1
        elif run.status == "failed" or run.accuracy(seconds=30.0).resolved is not True:
            findings.counts["that jumped, and said that they are not resolved"] += 1
        else:
            words = f"{kind}, {scheme}, h = {h:.3g}, {k}: changed its branch silently ({run.accuracy(seconds=30.0)})"
            findings.fault(number, words)
    return findings
