"""Figures 1 to 4 of paper III in S003: which adaptive methods drift, and which do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from livens import scaling
from livens.plot.curves import curve, time_axis
from livens.plot.style import PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import above, between, ranked
from livens.reproduce.s003.beyond import energy_error, not_reversible, of_higher_order, other_splittings
from livens.reproduce.s003.runs import adaptive, drifts, headed, steady, straight, until_failure
from livens.results.result import Result
from livens.schemes.scaling import Scaling

_SYMM = "step-density"
_HORIZON = "The horizon is not legible; ours is t = {}, and claims are held over ten times as long as well."


class _Example:
    """One of the four problems: a symplectic method against SYMM."""

    def __init__(
        self, name: str, symplectic: str, words: str, eps: float, t_end: float, density: Any, g: Scaling | None = None
    ) -> None:
        self.name, self.words, self.eps, self.t_end = name, words, eps, t_end
        self._symplectic, self._density, self._g = symplectic, density, g

    def _run(self, scheme: str, times: int) -> Result:
        # every seventh step of the long runs is enough to see how far they swing
        return adaptive(self.name, scheme, self.eps, times * self.t_end, (), self._g, 7 if times > 1 else 1)

    def symp(self, times: int = 1) -> Result:
        """Over the horizon, or over a multiple of it."""
        return self._run(self._symplectic, times)

    def symm(self, times: int = 1) -> Result:
        return self._run(_SYMM, times)

    def objective(self, result: Result) -> np.ndarray:
        """``log(Q/rho)``, which the exact motion keeps at zero."""
        return np.asarray(np.log(self._density(result.q) / result.step_density))

    def drawn(self) -> Figure:
        """Energy errors of both above, the objective of SYMM below; left the horizon, right ten times as long."""
        picture = new_figure(PAGE, 4.2)
        for (upper, lower), times in zip(picture.subplots(2, 2).T, (1, 10), strict=True):
            symm, symp = self.symm(times), self.symp(times)
            curve(upper, symm.t, energy_error(symm), color=PALETTE[1], linewidth=0.6, label="SYMM")
            curve(upper, symp.t, energy_error(symp), color=PALETTE[0], linewidth=0.6, label=self.words)
            curve(lower, symm.t, self.objective(symm), color=PALETTE[1], linewidth=0.6, label="SYMM")
            for axes in (upper, lower):
                time_axis(axes, symm)
            legend(upper)
            upper.set_ylabel("$H - H_0$")
            lower.set_ylabel(r"$\log(Q/\varrho)$")
        return headed(picture, rf"{self.name}, $\epsilon$ = {self.eps:g}")

    def conserving(self) -> list[Claim]:
        """What is claimed of the symplectic method."""
        claims = []
        for times, words in ((1, "does not drift"), (10, "does not drift over ten times the horizon either")):
            found = self.symp(times)
            text = f"{self.words} {words} (energy, {found.statistics.steps} steps)."
            claims.append(steady(text, found.t, energy_error(found)))
        return claims

    def drifting(self) -> list[Claim]:
        """What is claimed of SYMM."""
        claims = []
        for times, words in ((1, ""), (10, " over ten times the horizon")):
            found = self.symm(times)
            claims.append(drifts(f"The energy of SYMM drifts{words},", found.t, energy_error(found)))
            claims.append(drifts("and so does log(Q/rho).", found.t, self.objective(found)))
        ratio = float(np.abs(energy_error(self.symm(10))[-1]) / np.abs(energy_error(self.symp(10))).max())
        claims.append(above(f"Then SYMM is further off than {self.words} ever is (ratio).", ratio, 5.0))
        return claims


_KEPLER = _Example("kepler", "sundman", "SYMP(T,V)", 0.02, 200 * np.pi, lambda q: np.linalg.norm(q, axis=1) ** -1.5)


def _saved(e: float) -> Claim:
    """Steps of Verlet's scheme against those of SYMP(T,V) at the same error of the energy."""
    options = (("e", e),)
    symp = adaptive("kepler", "sundman", 0.02, 2 * np.pi, options)
    error, steps = symp.summary.max_energy_drift, symp.statistics.steps
    h = 2 * np.pi / (10 * steps)
    for _ in range(4):  # the error is O(h^2), once steps are small enough
        fixed = adaptive("kepler", "stormer-verlet", h, 2 * np.pi, options, None, 1000)
        h *= float(np.clip(np.sqrt(error / fixed.summary.max_energy_drift), 1e-2, 1e2))
    ratio = fixed.statistics.steps / steps
    text = f"Equal steps at the same largest error of energy need more evaluations of the force, e = {e:g} (ratio)."
    return above(text, ratio, 5.0)


@figure("S003", "III.1", "Energy errors for Kepler's problem", note=_HORIZON.format("628, a hundred periods"))
@house_style()
def kepler() -> tuple[Figure, list[Claim]]:
    picture, claims = _KEPLER.drawn(), _KEPLER.conserving()
    for times, words in ((1, "SYMM does not drift"), (10, "SYMM does not drift over ten times the horizon either")):
        found = _KEPLER.symm(times)
        claims.append(steady(f"{words}: energy,", found.t, energy_error(found)))
        claims.append(steady("log(Q/rho).", found.t, _KEPLER.objective(found)))
    both = {"SYMP(T,V)": _KEPLER.symp(10), "SYMM": _KEPLER.symm(10)}
    errors = {name: float(np.abs(energy_error(result)).max()) for name, result in both.items()}
    claims.append(ranked("The error constant of SYMP(T,V) is smaller.", errors))
    return picture, [*claims, _saved(0.8), _saved(0.99), *of_higher_order(), *other_splittings()]


def _walls(q: np.ndarray) -> np.ndarray:
    return np.asarray(1 / q[:, 0] ** 2 + 1 / (q[:, 0] - 10) ** 2)


_OSCILLATOR = _Example(
    "non-reversible-oscillator", "sundman", "SYMP(T,V)", 0.2, 3600.0, lambda q: np.sqrt(_walls(q) + 0.01 * q[:, 0])
)


@figure(
    "S003",
    "III.2",
    "Energy errors for a non-reversible oscillator",
    note=_HORIZON.format("3600") + " Where the text says that log(Q/rho) of SYMP(T,V) drifts, it means that of SYMM: "
    "SYMP(T,V) has no rho. Over a hundred times the horizon SYMP(T,V) still does not drift, while the steps of SYMM "
    "have become so wrong that its density falls to zero, and the run ends.",
)
@house_style()
def oscillator() -> tuple[Figure, list[Claim]]:
    ratio = straight(_OSCILLATOR.symm(10).t, energy_error(_OSCILLATOR.symm(10)))
    ratio /= straight(_OSCILLATOR.symm().t, energy_error(_OSCILLATOR.symm()))
    broken = until_failure(_OSCILLATOR.name, _SYMM, _OSCILLATOR.eps, 100 * _OSCILLATOR.t_end, (), None, 100)
    longest = _OSCILLATOR.symp(100)
    claims = [
        *_OSCILLATOR.conserving(),
        steady(f"Nor over a hundred times ({longest.statistics.steps} steps).", longest.t, energy_error(longest)),
        *_OSCILLATOR.drifting(),
        between("The drift is linear: in ten times as long the energy changes so many times as much.", ratio, 8, 12),
        Claim(
            "SYMM does not get to a hundred times the horizon.",
            f"{broken.status} at {broken.t[-1] / _OSCILLATOR.t_end:.0f} times",
            broken.status == "failed",
        ),
        *not_reversible(),
    ]
    return _OSCILLATOR.drawn(), claims


_PERTURBED = _Example(
    "non-reversible-oscillator",
    "sundman-doubled",
    "SYMP(q)",
    0.2,
    3600.0,
    lambda q: np.sqrt(_walls(q)),
    scaling.written(lambda q: (1 / q[0] ** 2 + 1 / (q[0] - 10) ** 2) ** -0.5),
)


@figure(
    "S003",
    "III.3",
    "Energy errors for a non-reversible oscillator, scaled by the walls alone",
    note=_HORIZON.format("3600") + " G as printed is large near the walls: it is the square of the density of steps Q. "
    "The scaling is its power -1/2, as in example 2. F01 and F10 need the energy H0 of the start, and each E goes "
    "round the F of its own pair. SYMP(q) is chaotic for a step of 0.25 already, in the paper for 0.3.",
)
@house_style()
def perturbed() -> tuple[Figure, list[Claim]]:
    claims = [*_PERTURBED.conserving(), *_PERTURBED.drifting()]
    for eps in (0.25, 0.3):
        broken = until_failure(_PERTURBED.name, "sundman-doubled", eps, _PERTURBED.t_end, (), _PERTURBED._g)
        largest = float(np.abs(energy_error(broken)).max())
        claims.append(above(f"With a step of {eps:g}, SYMP(q) is lost (largest change of H, of 1.02).", largest, 1.0))
    return _PERTURBED.drawn(), claims


_MAGNET = _Example(
    "magnetic-pendulum",
    "sundman",
    "SYMP(T,V)",
    0.001,
    73.0,
    lambda q: np.sqrt(1 - np.cos(q[:, 0]) + 0.1 / (np.cos(q[:, 0]) ** 2 + (1.05 - np.sin(q[:, 0])) ** 2)),
)


@figure(
    "S003",
    "III.4",
    "Energy errors for a pendulum beside a magnet",
    note=_HORIZON.format("73") + " V as printed is -0.95 at the lowest point, where V^(-1/2) does not exist. With the "
    "energy of gravitation counted from there, g (1 - cos q), V is positive everywhere. The energy of SYMM "
    "falls, until after three times the horizon nothing is left of the 1/8 that brings the pendulum past the magnet. "
    "It turns round, and from then on energy rises as fast as it fell: the method is reversible.",
)
@house_style()
def magnet() -> tuple[Figure, list[Claim]]:
    symm = _MAGNET.symm(10)
    back = int(np.argmax(symm.p[:, 0] < 0))
    rates = [
        straight(symm.t[part], energy_error(symm)[part]) / np.ptp(symm.t[part])
        for part in (slice(back), slice(back, None))
    ]
    claims = [
        above("The pendulum goes round in one direction (smallest momentum).", float(_MAGNET.symp(10).p.min()), 0.1),
        *_MAGNET.conserving(),
        *_MAGNET.drifting(),
        between(
            "SYMM turns round once it has lost the energy of passing the magnet, 1/8.",
            -float(energy_error(symm)[back]),
            0.115,
            0.135,
        ),
        between("Then the drift has turned its sign (rate over that before).", rates[1] / rates[0], -1.05, -0.95),
    ]
    return _MAGNET.drawn(), claims
