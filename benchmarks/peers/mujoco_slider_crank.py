"""Slider-crank of `benchmarks.crank` in MuJoCo, closed by a stiff soft constraint; prints one line of JSON."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import mujoco

from benchmarks import crank
from benchmarks.peers.clock import seconds

#: Moment of inertia about axes without rotation; MuJoCo requires a positive value.
_SMALL = 1e-6


def angle(h: float) -> float:
    """Build the model, run it and return the final crank angle."""
    (of_crank, of_rod), (first, second, third) = crank.moments(), crank.MASSES
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{h}" gravity="0 {-crank.GRAVITY} 0" integrator="RK4"/><worldbody>
        <body name="crank"><joint name="hinge" axis="0 0 1"/>
          <inertial pos="{crank.CRANK / 2} 0 0" mass="{first}" diaginertia="{_SMALL} {of_crank} {of_crank}"/>
          <body name="rod" pos="{crank.CRANK} 0 0"><joint name="pin" axis="0 0 1"/>
            <inertial pos="{crank.ROD / 2} 0 0" mass="{second}" diaginertia="{_SMALL} {of_rod} {of_rod}"/>
            <site name="end" pos="{crank.ROD} 0 0"/></body></body>
        <body name="slider" pos="{crank.CRANK + crank.ROD} 0 0"><joint name="guide" type="slide" axis="1 0 0"/>
          <inertial pos="0 0 0" mass="{third}" diaginertia="{_SMALL} {_SMALL} {_SMALL}"/><site name="pin"/></body>
        </worldbody><equality><connect site1="end" site2="pin" solref="{2 * h} 1" solimp="0.9999 0.9999 .001"/>
        </equality><actuator><motor joint="hinge"/></actuator></mujoco>"""
    )
    data = mujoco.MjData(model)
    a, b = crank.ANGLE, crank.rod_angle(crank.ANGLE)
    data.qpos[:] = [a, b - a, crank.CRANK * (math.cos(a) - 1) + crank.ROD * (math.cos(b) - 1)]
    for _ in range(round(crank.T_END / h)):
        data.ctrl[0] = 0.5 * math.sin(3 * data.time)
        mujoco.mj_step(model, data)
    return float(data.qpos[0])


def main(repeats: int) -> dict[str, Any]:
    h = crank.H
    while abs(angle(h) - crank.exact()) > crank.TOLERANCE and h > 1e-6:
        h /= 2
    best = min(seconds(lambda: angle(h)) for _ in range(repeats))
    return {
        "peer": "mujoco",
        "version": mujoco.__version__,
        "setting": "RK4, soft loop closure",
        "h": h,
        "seconds": best,
        "us_per_step": best / round(crank.T_END / h) * 1e6,
        "error": abs(angle(h) - crank.exact()),
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)))
