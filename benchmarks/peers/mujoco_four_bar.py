"""Double four-bar linkage in MuJoCo with the implicitfast integrator; prints one line of JSON.

Bodies form a tree of hinges; both loops are closed by stiff soft constraints.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import mujoco

from benchmarks.peers.clock import seconds

H, STEPS = 1e-3, 10_000
#: Axial and transverse moments of inertia of a bar; MuJoCo requires a positive axial one.
_ALONG, _ACROSS = 1e-6, 1 / 12


def _bar(name: str, upright: bool, x: float, z: float, children: str = "") -> str:
    """Return the XML of a bar on a hinge at (x, z) of its parent, with child elements."""
    centre, inertia = ("0 0 .5", (_ACROSS, _ACROSS, _ALONG)) if upright else (".5 0 0", (_ALONG, _ACROSS, _ACROSS))
    numbers = " ".join(f"{value:.10g}" for value in inertia)
    return (
        f'<body name="{name}" pos="{x} 0 {z}"><joint name="{name}" type="hinge" axis="0 1 0"/>'
        f'<inertial pos="{centre}" mass="1" diaginertia="{numbers}"/>{children}</body>'
    )


def _closure(upper: str, lower: str) -> str:
    """Return the XML of the loop closure between an upper and a lower bar, as stiff as a step of 1 ms allows."""
    return f'<connect body1="{upper}" body2="{lower}" anchor="1 0 0" solref="0.002 1" solimp="0.9999 0.9999 0.001"/>'


def model() -> Any:
    bars = [
        _bar("lower0", True, 0, 0, _bar("upper0", False, 0, 1)),
        _bar("lower1", True, 1, 0, _bar("upper1", False, 0, 1)),
        _bar("lower2", True, 2, 0),
    ]
    closures = _closure("upper0", "lower1") + _closure("upper1", "lower2")
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{H}" gravity="0 0 -9.81" integrator="implicitfast" solver="Newton"'
        ' iterations="50" tolerance="1e-12"><flag contact="disable" energy="enable"/></option>'
        f"<worldbody>{''.join(bars)}</worldbody><equality>{closures}</equality></mujoco>"
    )


def initial_data(linkage: Any) -> Any:
    """Return the initial data: lower bars rotate at 1 rad/s, upper bars stay horizontal."""
    data = mujoco.MjData(linkage)
    for name in ("lower0", "lower1", "lower2", "upper0", "upper1"):
        data.qvel[linkage.joint(name).dofadr[0]] = 1.0 if name.startswith("lower") else -1.0
    mujoco.mj_forward(linkage, data)
    return data


def energy_error(linkage: Any) -> float:
    """Return the largest relative energy deviation of a run."""
    data = initial_data(linkage)
    initial_energy, worst = float(data.energy.sum()), 0.0
    for _ in range(STEPS):
        mujoco.mj_step(linkage, data)
        worst = max(worst, abs(float(data.energy.sum()) / initial_energy - 1))
    return worst


def main(repeats: int) -> dict[str, Any]:
    linkage = model()
    error = energy_error(linkage)
    best, tip = math.inf, math.nan
    for _ in range(repeats):
        data = initial_data(linkage)
        best = min(best, seconds(lambda: mujoco.mj_step(linkage, data, STEPS)))
        tip = math.sin(float(data.qpos[linkage.joint("lower0").qposadr[0]]))
    return {
        "peer": "mujoco",
        "version": mujoco.__version__,
        "setting": "implicitfast, soft loop closures",
        "us_per_step": best / STEPS * 1e6,
        "x4_end": tip,
        "energy_error": error,
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)))
