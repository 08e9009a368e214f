"""Figure 2.1 of Modin 2009 and figure 1 of its paper I: unbalanced rotor near resonance."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import minimum_filter1d

from livens import math as m
from livens import problems
from livens.models.hamiltonian.model import Hamiltonian
from livens.plot.curves import curve, time_axis
from livens.plot.style import GREY, PAGE, PALETTE, house_style, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import claim_above, claim_below, claim_between, claim_order, claim_ranked, run
from livens.reproduce.modin_2009.runs import with_title
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.types import ScalarLike, Vector

_H, _T_END = 0.2, 1000.0
_OMEGA, _EPS = 1.02, 0.1
_BEAT = 2 * np.pi / (_OMEGA - 1)
_GEOMETRIC = {"implicit-midpoint": "implicit midpoint", "strang": "splitting (Störmer-Verlet)"}
_IMPLICIT = {"implicit-extrapolation": "implicit extrapolation"}
_NOTE = (
    "Step size and horizon are not given; here they are 0.2 s and 1000 s, where the four methods differ visibly. Their "
    "effect on a free oscillation of frequency 1 explains the results: the amplitude grows by exp(h^3 t/8) with the "
    "explicit method and decays by exp(-h^3 t/4) with implicit extrapolation; the frequency error is -h^2/12 "
    "(midpoint) and +h^2/24 (splitting). The frequency error changes the beat, 0.02 from resonance, by 17 and 8 per "
    "cent. With steps of 0.2 s the beat of the midpoint rule is so far ahead after 1000 s that its error in q1 is not "
    "smaller than that of the extrapolation, whose beat has decayed; up to 628 s, or with smaller steps, it is."
)


def _rotor(scheme: str, h: float = _H, t_end: float = _T_END) -> Result:
    return run("rotor", scheme, h, t_end)


def _exact(t: np.ndarray) -> np.ndarray:
    reference = problems.load("rotor").reference
    assert reference is not None
    return np.array([reference(s)["q"][0] for s in t])


def _amplitude(result: Result) -> np.ndarray:
    """Return the slowly varying amplitude of q1."""
    return np.hypot(result.q[:, 0], result.v[:, 0])


def _amplitude_ratio(result: Result) -> float:
    """Return the ratio of smallest to largest amplitude after the first beat, close to 0 while beats persist."""
    late = _amplitude(result)[result.t > 0.75 * _BEAT]
    return float(late.min() / late.max())


def _beat_period(result: Result) -> float:
    """Return the mean beat period between the first and the last minimum of the amplitude."""
    a, t = _amplitude(result), result.t
    in_range = (t > _H) & (t < result.t[-1] - 40)
    low = np.flatnonzero(in_range & (a == minimum_filter1d(a, size=401)))
    return float((t[low[-1]] - t[low[0]]) / (len(low) - 1))


def _draw(explicit: dict[str, str]) -> tuple[Figure, list[Claim]]:
    methods = {**_GEOMETRIC, **_IMPLICIT, **explicit}
    picture = new_figure(PAGE, 6.0)
    panels = picture.subplots(5, 1, sharex=True, sharey=True)
    t = np.arange(0, _T_END, _H)
    curve(panels[0], t, _exact(t), color=GREY, linewidth=0.4)
    panels[0].set_title("exact", color=GREY)
    results = {scheme: _rotor(scheme) for scheme in methods}
    for i, (axes, (scheme, label)) in enumerate(zip(panels[1:], methods.items(), strict=True)):
        curve(axes, results[scheme].t, results[scheme].q[:, 0], color=PALETTE[int(i > 1)], linewidth=0.4)
        axes.set_title(label, color=GREY)
        axes.set_xlabel("")
    for axes in panels:
        axes.set_ylabel("$q_1$ (m)")
    time_axis(panels[-1], results["strang"])
    return with_title(picture, f"rotor, h = {_H:g} s"), _claims(methods, results)


def _claims(methods: dict[str, str], results: dict[str, Result]) -> list[Claim]:
    largest = 2 * _EPS * _OMEGA**2 / (_OMEGA**2 - 1)
    claims = []
    for scheme, label in _GEOMETRIC.items():
        run_result = results[scheme]
        claims += [
            claim_below(
                f"With the {label}, beats decrease to almost zero (smallest over largest amplitude).",
                _amplitude_ratio(run_result),
                0.1,
            ),
            claim_between(
                "The beats have the exact height (ratio),",
                float(np.abs(run_result.q[:, 0]).max() / largest),
                0.8,
                1.2,
            ),
            claim_between("and the exact period (ratio).", _beat_period(run_result) / _BEAT, 0.8, 1.2),
        ]
    for scheme in list(methods)[2:]:
        text = f"With {methods[scheme]}, beats do not decrease to zero (smallest over largest amplitude)."
        claims.append(claim_above(text, _amplitude_ratio(results[scheme]), 0.1))
    claims.append(_claim_smaller_errors(methods, _H, 2 * _BEAT))
    claims.append(_claim_smaller_errors(methods, _H / 2, _T_END))
    steps = [0.2 / 2**i for i in range(5)]
    for scheme, label in methods.items():
        errors = [float(np.linalg.norm(_state(scheme, h) - _reference())) for h in steps]
        claims.append(claim_order(f"{label}: order 2 (t = 50 s).", 2, steps, errors))
    return [*claims, *_rotating_frame_claims()]


def _rotating_frame_claims() -> list[Claim]:
    """Return the claim on the rotor in a rotating frame, where A(t) is time-dependent and not separable."""

    def rate(t: ScalarLike) -> ScalarLike:
        return 0.5 + 0.2 * m.cos(t)

    def angle(t: ScalarLike) -> Any:
        return 0.5 * t + 0.2 * m.sin(t)

    def energy(q: Vector, p: Vector, t: ScalarLike) -> Any:
        load_angle = _OMEGA * t + angle(t)
        load = m.array([-m.cos(load_angle), m.sin(load_angle)])
        return p @ p / 2 - rate(t) * (q[0] * p[1] - q[1] * p[0]) + q @ q / 2 - _EPS * _OMEGA**2 * (load @ q)

    model, steps, errors = Hamiltonian("q1 q2", hamiltonian=energy), [0.1 / 2**i for i in range(4)], []
    initial: dict[str, Any] = {"q0": [0.0, 0.0], "p0": [0.0, 0.0], "scheme": "strang", "progress": False}
    c, s = np.cos(-angle(50.0)), np.sin(-angle(50.0))
    exact = np.array([[c, -s], [s, c]]) @ _reference()[:2]
    for h in steps:
        errors.append(float(np.abs(simulate(model, h=h, t_end=50.0, **initial).q[-1] - exact).max()))
    return [claim_order("Splitting in a rotating frame, where A(t) is not separable: order 2.", 2, steps, errors)]


def _claim_smaller_errors(methods: dict[str, str], h: float, until: float) -> Claim:
    """Return the claim that both geometric methods have smaller errors than both other methods."""
    t = np.arange(0, until, h)
    exact = _exact(t)
    errors = [float(np.sqrt(np.mean((_rotor(scheme, h).q[: len(t), 0] - exact) ** 2))) for scheme in methods]
    text = f"Both geometric methods have smaller errors in q1 (root mean square up to {until:.0f} s, h = {h:g} s)."
    return claim_ranked(text, {"larger geometric error": max(errors[:2]), "smaller other error": min(errors[2:])})


def _state(scheme: str, h: float) -> np.ndarray:
    run_result = _rotor(scheme, h, 50.0)
    return np.concatenate([run_result.q[-1], run_result.v[-1]])


def _reference() -> np.ndarray:
    reference = problems.load("rotor").reference
    assert reference is not None
    state = reference(50.0)
    return np.concatenate([state["q"], state["v"]])


@figure("modin-2009", "2.1", "Resonance of a rotor", note=_NOTE, quick=True)
@house_style()
def resonance() -> tuple[Figure, list[Claim]]:
    return _draw({"explicit-midpoint": "explicit midpoint"})


@figure("modin-2009", "I.1", "Resonance of a rotor, with Heun's method", note=_NOTE, quick=True)
@house_style()
def resonance_heun() -> tuple[Figure, list[Claim]]:
    return _draw({"heun": "Heun"})
