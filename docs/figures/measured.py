"""Pictures of measurements over many runs: accuracy, ensembles, large systems, robots and the ball bearing."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from registry import DOCS, panels, picture

import livens as lv
from livens.plot.style import PALETTE, new_figure

sys.path.insert(0, str(DOCS.parent))
sys.path.insert(0, str(DOCS.parent / "tests"))
import truth  # true errors of built-in problems, which the tests compare with estimates
from benchmarks import robot_steps

#: Numbers of steps of the picture of estimated errors, and of schemes for each problem.
_STEPS, _SCHEMES = (20, 64, 160, 500, 1600), 6


@picture
def accuracy() -> Figure:
    figure, axes = panels(2, 6.8, 2.9)
    problem = lv.problems.load("simple-pendulum")
    reference = lv.simulate(problem, h=1e-4)
    span = 0.5 * np.linalg.norm(np.ptp(reference.q, axis=0))
    for h, colour in zip((0.1, 0.01, 0.001), PALETTE, strict=False):
        run = lv.simulate(problem, h=h)
        estimate = run.accuracy()
        axes[0].semilogy(estimate.t, estimate.over_time["q"], color=colour, label=f"$h$ = {h:g}: {estimate.verdict}")
        rows = np.linspace(1, len(run.t) - 1, 24).astype(int)
        exact = reference.q[np.rint(run.t[rows] / 1e-4).astype(int)]
        errors = np.linalg.norm(run.q[rows] - exact, axis=1) / span
        axes[0].semilogy(run.t[rows], errors, "o", color=colour, markersize=2)
    axes[0].set(xlabel="$t$ (s)", ylabel="error of $q$, of its motion", title="lines: estimates; dots: true errors")
    axes[0].set_ylim(1e-9, 10)
    axes[0].legend(loc="lower right")
    points: dict[str, list[tuple[float, float]]] = {}
    for name in truth.SPANS:
        schemes = truth.fitting(name)
        for value in truth.table((name, scheme, n) for scheme in schemes[:: len(schemes) // _SCHEMES] for n in _STEPS):
            points.setdefault(value[4], []).append((value[-1], value[-2]))
    print({verdict: len(values) for verdict, values in points.items()}, len(truth.SPANS))
    ratios = [estimated / true for true, estimated in points["resolved"]]
    print(f"estimate / true error of the resolved ones: {min(ratios):.2f} to {max(ratios):.2f}")
    for (verdict, values), colour in zip(sorted(points.items(), key=lambda item: -len(item[1])), PALETTE, strict=False):
        axes[1].loglog(*np.array(values).T, "o", color=colour, markersize=2, label=f"{verdict} ({len(values)})")
    limits = np.array([1e-12, 30])
    for factor in (1 / 3, 3):
        axes[1].loglog(limits, factor * limits, color="black", linewidth=0.6)
    axes[1].set(xlabel="true error", ylabel="estimated error", title="thin lines: a factor of 3")
    axes[1].legend(loc="upper left")
    return figure


@picture
def cluster() -> Figure:
    """Final angle of a double pendulum over its two initial angles."""
    n = 120
    angles = np.deg2rad(np.linspace(-180, 180, n))
    first, second = np.meshgrid(angles, angles)
    bob = np.stack([np.sin(first), -np.cos(first)], -1)
    tip = bob + np.stack([np.sin(second), -np.cos(second)], -1)
    many = lv.ensemble(
        lv.problems.load("double-pendulum"),
        q0=np.concatenate([bob, tip], -1).reshape(-1, 4), v0=np.zeros((n * n, 4)), h=0.01, t_end=4.0, every=400,
    )  # fmt: skip
    ends = np.asarray(many.q)[:, -1]
    angle = np.arctan2(ends[:, 2] - ends[:, 0], ends[:, 1] - ends[:, 3]).reshape(n, n)
    figure = new_figure(4.2, 3.5)
    axes = figure.add_subplot()
    image = axes.imshow(angle, origin="lower", extent=(-180, 180, -180, 180), cmap="twilight", vmin=-np.pi, vmax=np.pi)
    figure.colorbar(image, label="lower angle after 4 s (rad)")
    ticks = [-180, -90, 0, 90, 180]
    axes.set(xlabel="upper angle at the start (degrees)", ylabel="lower angle (degrees)", xticks=ticks, yticks=ticks)
    return figure


@picture
def large() -> Figure:
    """Processor time per step against the number of bodies."""
    figure = new_figure(4.8, 3.0)
    axes = figure.add_subplot()
    cases: tuple[tuple[str, str, Any], ...] = (
        ("four-bar loops in the plane", "n-four-bar", lambda n: (n - 1) // 2),
        ("rods with ball joints in space", "chain", lambda n: n),
    )
    for label, name, option in cases:
        counts = [11, 33, 101, 317, 1001, 3163, 10001]
        costs = []
        for count in counts:
            problem = lv.problems.load(name, N=option(count))
            costs.append(1e6 * min(_seconds_per_step(problem) for _ in range(3)))
        power = np.polyfit(np.log(counts[2:]), np.log(costs[2:]), 1)[0]
        axes.loglog(counts, costs, "o-", markersize=3, label=f"{label}: power {power:.2f} from 100 bodies on")
    axes.set(xlabel="bodies", ylabel="processor time per step (µs)", title="lie-em, assembled tier, one thread")
    axes.grid(True)
    axes.legend(loc="upper left")
    return figure


def _seconds_per_step(problem: Any) -> float:
    """Return the processor time of a step, from runs of two lengths."""
    h = problem.h
    steps = (20, 60)
    spent = []
    for count in steps:
        begin = time.process_time()
        lv.simulate(problem, h=h, t_end=count * h, tier="assembled", every=count, progress=False)
        spent.append(time.process_time() - begin)
    return (spent[1] - spent[0]) / (steps[1] - steps[0])


@picture
def robots() -> Figure:
    """Processor time per step of robots and chains, beside MuJoCo in the same process, with OMP_NUM_THREADS=1."""
    labels = {"tree": "livens, tree tier", "Euler": "MuJoCo, Euler", "RK4": "MuJoCo, RK4"}
    rows = list(robot_steps.times_of_steps())
    print(
        "\n".join(f"| {name} | " + " | ".join(f"{times[code]:.2f}" for code in labels) + " |" for name, times in rows)
    )
    print("satellite: errors of order two and four, time of a step", robot_steps.satellite())
    figure = new_figure(6.4, 4.6)
    axes = figure.add_subplot()
    place, width = np.arange(len(rows)), 0.27
    for i, ((code, label), colour) in enumerate(zip(labels.items(), PALETTE, strict=False)):
        values = [times[code] for _, times in rows]
        bars = axes.barh(place + (i - 1) * width, values, width, color=colour, label=label)
        texts = [f"{value:.2g}" if value < 10 else f"{value:.0f}" for value in values]
        axes.bar_label(bars, texts, padding=2, fontsize=6)
    axes.set_yticks(place, [name for name, _ in rows])
    axes.set(xscale="log", xlim=(0.3, 8000), xlabel="processor time per step (µs), h = 1 ms")
    axes.invert_yaxis()
    axes.legend(loc="upper right")
    return figure


@picture
def bearing() -> Figure:
    figure, axes = panels(2, 6.0, 2.2)
    run = lv.simulate(lv.problems.load("ball-bearing", case="axial-step"))
    ms = 1e3 * run.t
    axes[0].plot(ms, run["ball1-outer.normal_force"], label="outer race")
    axes[0].plot(ms, run["ball1-inner.normal_force"], label="inner race")
    axes[0].set(xlabel="$t$ (ms)", ylabel="normal force on ball 1 (N)")
    axes[0].legend()
    axes[1].plot(ms, run["cage.speed"], color=PALETTE[2])
    axes[1].set(xlabel="$t$ (ms)", ylabel="cage speed (rad/s)")
    return figure
