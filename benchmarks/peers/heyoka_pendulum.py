"""Ensemble of simple pendulums with heyoka's batch integrator, in the angle (heyoka has no constraints)."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

#: Tolerance per step with about the final accuracy of the second-order scheme with steps of 1 ms.
_TOLERANCE = 1e-9


def main(members: int, steps: int) -> dict[str, float]:
    import heyoka as hy

    from livens.problems import load

    problem = load("simple-pendulum")
    width, random = hy.recommended_simd_size(), np.random.default_rng(0)
    spread = 1 + 0.2 * random.uniform(-1, 1, (2, members))
    angle, rate = hy.make_vars("angle", "rate")
    equations = [(angle, rate), (rate, -hy.par[0] * hy.sin(angle))]
    start: Any = np.zeros((2, width))
    integrator = hy.taylor_adaptive_batch(equations, start, pars=np.ones((1, width)), tol=_TOLERANCE)
    t_end, best = steps * problem.h, float("inf")
    for _ in range(3):
        start_time = time.process_time()
        for offset in range(0, members - width + 1, width):
            batch = slice(offset, offset + width)
            integrator.set_time(0.0)
            integrator.state[0] = -np.pi / 2  # q = (-1, 0)
            integrator.state[1] = -spread[0, batch]
            integrator.pars[0] = 9.81 * spread[1, batch]
            integrator.propagate_until(t_end)
        best = min(best, time.process_time() - start_time)
    return {"us": best / (members // width * width * steps) * 1e6}


if __name__ == "__main__":
    import sys

    print(json.dumps(main(**json.loads(sys.argv[1]))))
