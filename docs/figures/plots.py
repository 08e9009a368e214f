"""Plots of runs, of studies and of the examples of the pages."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from registry import names_of, panels, picture

import livens as lv
from livens import plot
from livens.plot import convergence, study_results
from livens.plot.style import PALETTE


def linkage(h: float = 1e-3, **options: Any) -> Any:
    """Return a run of the double four-bar linkage."""
    return lv.simulate(lv.problems.load("double-four-bar"), h=h, **options)


# -- types of plots ---------------------------------------------------------------------------------------------------
@picture
def energy() -> Figure:
    return linkage().plot.energy()


@picture
def energy_increments() -> Figure:
    return linkage().plot.energy_increments()


@picture
def constraints() -> Figure:
    return linkage().plot.constraints()


@picture
def coordinates() -> Figure:
    return linkage(t_end=4.0).plot.coordinates(["lower0.x", "lower0.y"])


@picture
def snapshots() -> Figure:
    return linkage(t_end=1.4).plot.snapshots()


@picture
def multipliers() -> Figure:
    return linkage(t_end=4.0).plot.multipliers()


@picture
def newton() -> Figure:
    return linkage(h=1e-2).plot.newton()


@picture
def momenta() -> Figure:
    return lv.simulate(lv.problems.load("spring-pendulum"), h=1e-2).plot.momenta()


@picture
def trajectory() -> Figure:
    return lv.simulate(lv.problems.load("spring-pendulum"), h=1e-2, t_end=5.0).plot.trajectory()


@picture
def phase_portrait() -> Figure:
    run = lv.simulate(lv.problems.load("simple-pendulum"), h=1e-2)
    return run.plot.phase_portrait("x")


@picture
def axes() -> Figure:
    run = linkage(h=1e-2, t_end=4.0)
    figure, (left, right) = panels(2, height=2.8)
    run.plot.energy(ax=left)
    run.plot.snapshots(ax=right)
    return figure


# -- studies ----------------------------------------------------------------------------------------------------------
@picture
def study_compare() -> Figure:
    problem = lv.problems.load("spring-pendulum-spherical")
    study = lv.study.compare(problem, "livens-em,livens-midpoint,livens-variational")
    return convergence.comparison_diagram({entry.scheme: entry.result for entry in study.entries})


@picture
def study_order() -> Figure:
    return convergence.order_diagram(_convergence())


@picture
def study_work_precision() -> Figure:
    return convergence.work_precision_diagram(_convergence())


def _convergence() -> Any:
    return lv.study.converge(lv.problems.load("simple-pendulum"), "livens-em,livens-variational,symplectic-euler")


@picture
def fit() -> Figure:
    return study_results.fit(names_of("howto/fit-and-optimise.md")["found"])


@picture
def uncertainty() -> Figure:
    return plot.band(names_of("howto/fit-and-optimise.md", 3)["spread"], "x")


@picture
def lyapunov() -> Figure:
    return plot.exponents(names_of("howto/stability.md")["chaos"])


# -- runs -------------------------------------------------------------------------------------------------------------
@picture
def gradients() -> Figure:
    run = lv.prepare(lv.problems.load("simple-pendulum"), scheme="livens-em", h=1e-3, t_end=3.0).run(every=10)
    figure, (top, bottom) = panels(1, width=3.5, height=3.2, rows=2)
    for i, name in enumerate("xy"):
        top.plot(run.t, run.q[:, i], label=f"${name}$")
    top.set(ylabel="path (m)")
    changes = {
        r"\partial x/\partial g": dict(parameters={"g": 1.0}),
        r"\partial x/\partial l": dict(parameters={"l": 1.0}, q0=[-1.0, 0.0]),
        r"\partial x/\partial v_0": dict(v0=[0.0, 1.0]),
    }
    for label, direction in changes.items():
        bottom.plot(run.t, run.jvp(**direction)["q"][:, 0], label=f"${label}$")
    bottom.set(xlabel="$t$ (s)", ylabel="derivatives of $x$")
    for each in (top, bottom):
        each.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return figure


@picture
def ensemble() -> Figure:
    lengths = np.linspace(0.5, 2.0, 40)
    q0 = np.column_stack([-lengths, 0 * lengths])
    many = lv.ensemble(
        lv.problems.load("simple-pendulum"), q0=q0, parameters={"l": lengths}, h=1e-3, t_end=3.0, every=20
    )
    figure, (left, right) = panels(2)
    from matplotlib import colormaps

    for member, length in enumerate(lengths):
        angle = np.degrees(np.unwrap(np.arctan2(many.q[member, :, 0], -many.q[member, :, 1])))
        left.plot(many.t, angle, color=colormaps["viridis"]((length - 0.5) / 1.5), linewidth=0.6)
    left.set(xlabel="$t$ (s)", ylabel="angle from the vertical (degrees)", title="dark: 0.5 m, light: 2 m")
    right.semilogy(lengths, [summary.max_energy_drift for summary in many.summary], ".")
    right.set(xlabel="length (m)", ylabel="largest relative energy error", ylim=(1e-16, 1e-12), title="3000 steps")
    return figure


@picture
def steps_robertson() -> Figure:
    robertson = lv.FirstOrder(
        "a b c",
        rhs=lambda x: [
            -0.04 * x[0] + 1e4 * x[1] * x[2],
            0.04 * x[0] - 1e4 * x[1] * x[2] - 3e7 * x[1] ** 2,
            3e7 * x[1] ** 2,
        ],
    )
    control = lv.StepControl(tolerance=1e-7, absolute={"a": 1e-9, "b": 1e-12, "c": 1e-9})
    run = lv.simulate(robertson, x0=[1, 0, 0], scheme="radau-iia-3", t_end=1e11, h=1e-6, control=control)
    figure, (left, right) = panels(2)
    left.loglog(run.t[1:], np.diff(run.t))
    left.set(xlabel="$t$ (s)", ylabel="step size (s)", title=f"{run.statistics.steps} steps")
    for i, name in enumerate("abc"):
        right.loglog(run.t[1:], run.x[1:, i], label=name)
    right.set(xlabel="$t$ (s)", ylabel="concentration", ylim=(1e-15, 10))
    right.legend()
    return figure


@picture
def adaptive_steps() -> Figure:
    problem, t_end = lv.problems.load("double-four-bar-multibody"), 3.0
    figure, (left, right) = panels(2)
    controlled = lv.simulate(problem, t_end=t_end, tolerance=1e-4)
    scaling = lv.scaling.curvature(0.2, 1.0)
    reversible = lv.simulate(problem, t_end=t_end, adaptive="reversible", h=1e-2, scaling=scaling)
    for run, label in ((controlled, "tolerance"), (reversible, "reversible")):
        left.plot(run.t[1:-2], 1e3 * run.step_size[1:-2], label=f"{label}, {run.statistics.steps} steps")
    left.set(xlabel="$t$ (s)", ylabel="step size (ms)", title="step sizes", ylim=(0, 15))
    left.legend()
    speed = np.linalg.norm(np.diff(controlled.q, axis=0), axis=1) / np.diff(controlled.t)
    right.plot(controlled.t[1:], speed)
    right.set(xlabel="$t$ (s)", ylabel="speed of the coordinates", title="motion", ylim=(0, None))
    return figure


@picture
def planets() -> Figure:
    problem = lv.problems.load("outer-solar-system")
    reference = lv.simulate(problem, scheme="taylor", t_end=1e6)
    figure, (left, right) = panels(2)
    for scheme, h in (("position-verlet", 20.0), ("wisdom-holman", 200.0), ("wisdom-holman:20", 4000.0)):
        run = lv.simulate(problem, scheme=scheme, h=h, t_end=1e6, every=max(1, int(4000 / h)))
        error = np.abs(run.q - reference.at(run.t).q).max(axis=1)
        energies = run.observe("total_energy")
        left.semilogy(run.t[1:] / 365.25, error[1:], label=f"{scheme}, h = {h:g} d")
        right.semilogy(run.t[1:] / 365.25, np.abs(energies[1:] / energies[0] - 1), linewidth=0.5)
    left.set(xlabel="years", ylabel="error of positions (AU)")
    right.set(xlabel="years", ylabel="relative error of the energy")
    figure.legend(loc="outside upper left", ncols=3)
    return figure


@picture
def taylor() -> Figure:
    run = lv.simulate(lv.problems.load("pleiades"), scheme="taylor")
    times = np.linspace(run.t[0], run.t[-1], 2000)
    x, y = (run.at(times).q[:, [run.info.coordinates.index(f"{axis}{i}") for i in range(1, 8)]] for axis in "xy")
    stars = x.shape[1]
    figure, (left, right) = panels(2, height=2.6)
    for i in range(stars):
        left.plot(x[:, i], y[:, i], color=PALETTE[i], linewidth=0.8)
    left.set(xlabel="$x$", ylabel="$y$", aspect="equal", title="seven stars")
    distances = np.hypot(x[:, :, None] - x[:, None], y[:, :, None] - y[:, None]) + 1e9 * np.eye(stars)
    right.semilogy(times, distances.min(axis=(1, 2)), label="smallest distance")
    right.semilogy(run.t[1:], np.diff(run.t), drawstyle="steps-pre", label="step size")
    right.set(xlabel="$t$", title=f"{run.statistics.steps} steps of order 20")
    right.legend()
    return figure


# -- contact ----------------------------------------------------------------------------------------------------------
@picture
def contact() -> Figure:
    names = names_of("howto/contact.md")
    run, lost = names["run"], names["lost"]
    figure, (height, force, balance) = panels(3)
    height.plot(run.t, 100 * run["ball.position"][:, 2])
    height.set(xlabel="$t$ (s)", ylabel="height of the centre (cm)", title="ball thrown onto a table")
    force.plot(run.t, run["ball-ground.normal_force"], linewidth=0.6)
    force.set(xlabel="$t$ (s)", ylabel="normal force (N)")
    for label, values in lost.items():
        balance.plot(run.t, values, label=label.removeprefix("ball-ground "))
    balance.plot(run.t, run.observe("kinetic_energy"), label="kinetic energy")
    balance.set(xlabel="$t$ (s)", ylabel="energy (J)", title="dissipated energy by term")
    balance.legend()
    return figure


@picture
def rigid_impact() -> Figure:
    run = names_of("howto/rigid-impacts.md")["run"]
    figure, (height, velocity, force) = panels(3)
    height.plot(run.t, run["marble.position"][:, 2] - 0.1)
    height.set(xlabel="$t$ (s)", ylabel="height of the gap (m)", title="impacts, then persistent contact")
    velocity.plot(run.t, run["marble.velocity"][:, 0], label="speed of the centre")
    velocity.plot(run.t, run["marble.velocity"][:, 0] - 0.1 * run["marble.omega"][:, 1], label="slip")
    velocity.set(xlabel="$t$ (s)", ylabel="velocity (m/s)", title="friction turns sliding into rolling")
    velocity.legend()
    force.plot(run.t, run["marble-ground bounce.normal_force"])
    force.axhline(0.3 * 9.81, color="#7F7F7F", linestyle=":", label="weight")
    force.set(xlabel="$t$ (s)", ylabel="normal force (N)", title="without impulses")
    force.legend()
    return figure


@picture
def contact_group() -> Figure:
    names = names_of("howto/contact-groups.md")
    fall, heap, lost = names["fall"], names["heap"], names["lost"]
    figure, (paths, balance) = panels(2)
    for body in ("log0", "log1", "log2", "stone"):
        paths.plot(fall.t, fall[f"{body}.position"][:, 2], label=body)
    paths.set(xlabel="$t$ (s)", ylabel="height of the centre (m)", title="three logs and a stone fall on a floor")
    energy = fall.observe("total_energy") + heap.stored_energy(fall)
    curves = {"mechanical energy": energy, **{label.removeprefix("heap "): each for label, each in lost.items()}}
    for label, values in curves.items():
        balance.plot(fall.t, values, label=label)
    balance.plot(fall.t, sum(curves.values()), "k:", label="sum")
    balance.set(xlabel="$t$ (s)", ylabel="energy (J)", title="energy balance")
    for each in (paths, balance):
        each.legend()
    return figure


# -- mechanisms -------------------------------------------------------------------------------------------------------
@picture
def slider_crank() -> Figure:
    run = names_of("howto/build-mechanisms.md")["run"]
    figure, (positions, angle, force) = panels(3)
    rows = np.searchsorted(run.t, np.arange(0, 1.21, 0.1))
    from matplotlib import colormaps

    for row in rows:
        a, b, c = run["crank.a"][row], run["crank.b"][row], run["rod.b"][row]
        colour = colormaps["viridis"](run.t[row] / 1.3)
        positions.plot([a[0], b[0], c[0]], [a[2], b[2], c[2]], color=colour, marker=".", markersize=3)
    positions.set(xlabel="$x$ (m)", ylabel="$z$ (m)", aspect="equal", title="every 0.1 s, dark to light")
    angle.plot(run.t, run["hinge.angle"])
    angle.set(xlabel="$t$ (s)", ylabel="angle of the hinge (rad)")
    for i, axis in ((0, "x"), (2, "z")):
        force.plot(run.t, run["pin.force"][:, i], label=axis)
    force.set(xlabel="$t$ (s)", ylabel="force in the pin (N)")
    force.legend()
    return figure


@picture
def forces() -> Figure:
    page = "howto/forces-and-control.md"
    rope, wheel, stop, engine = (names_of(page, name)["run"] for name in ('"rope"', '"oil"', '"floor"', '"engine"'))
    figure, axes = panels(4, 9.6)
    axes[0].plot(rope.t, rope["rope.tension"])
    axes[0].set(title="cable over two pulleys", ylabel="tension (N)")
    axes[1].plot(wheel.t, wheel["motor.torque"], label="motor")
    axes[1].plot(wheel.t, wheel["oil.torque"], label="damper")
    axes[1].set(title="motor and damper", ylabel="torque (N m)")
    axes[1].legend()
    axes[2].plot(stop.t, stop["rail.position"])
    axes[2].set(title="hard stop at $-1$ m", ylabel="position (m)")
    shown = engine.t < 0.6
    for i in (0, 2):
        axes[3].plot(engine.t[shown], engine[f"mount{i}.force"][shown, 2], label=f"mount{i}")
    axes[3].set(title="shaken engine on bushings", ylabel="vertical force (N)")
    axes[3].legend()
    for ax in axes:
        ax.set_xlabel("$t$ (s)")
    return figure


@picture
def control() -> Figure:
    figure, axes = panels(2, 6.4)
    for label, gains in {"pd": {}, "pid": {"ki": 80}}.items():
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1)
        hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
        (mb.pid if gains else mb.pd)(hinge, kp=60, kd=12, reference=0.3, name="servo", **gains)
        run = mb.simulate(t_end=4, h=0.01)
        axes[0].plot(run.t, run["hinge.angle"], label=label)
        axes[1].plot(run.t, run["servo.torque"], label=label)
    axes[0].axhline(0.3, color="0.6", linewidth=0.8, zorder=0)
    axes[0].set(xlabel="$t$ (s)", ylabel="angle (rad)", title="arm steered to 0.3 rad")
    axes[1].set(xlabel="$t$ (s)", ylabel="torque (N m)")
    axes[0].legend()
    return figure


@picture
def joints() -> Figure:
    disc, gear, shafts = (
        lv.simulate(lv.problems.load(name)) for name in ("rolling-disc", "joint-gear", "joint-shafts")
    )
    figure, axes = panels(3)
    axes[0].plot(disc["disc.x"], disc["disc.y"])
    axes[0].set(title="centre of a rolling disc", xlabel="$x$ (m)", ylabel="$y$ (m)")
    axes[0].axis("equal")
    for name, label in {"one": "small wheel", "two": "large wheel"}.items():
        axes[1].plot(gear.t, gear[f"{name}.angle"], label=label)
    axes[1].set(title="two gears", xlabel="$t$ (s)", ylabel="angle (rad)")
    for name, label in {"first": "input", "second": "output"}.items():
        axes[2].plot(shafts.t, shafts[f"{name}.rate"], label=label)
    axes[2].set(title="shafts with a universal joint", xlabel="$t$ (s)", ylabel="rate (rad/s)")
    axes[1].legend()
    axes[2].set_ylim(8, 10.8)
    axes[2].legend(ncols=2, loc="upper center")
    return figure


@picture
def pareto_front() -> Figure:
    front = names_of("howto/optimal-control.md", 3)["front"]
    figure, (ax,) = panels(1, 3.6, 2.6)
    effort, time = front.costs.T
    ax.plot(effort, time, "o", label="solutions")
    exact = np.linspace(time.min(), time.max(), 200)
    ax.plot(12 * 400 / 399 / exact**3, exact, color="0.6", zorder=0, label="$12/T^3$, for 20 steps")
    ax.set(xlabel="effort", ylabel="end time (s)")
    ax.legend()
    return figure


@picture
def hopper_gait() -> Figure:
    gait = lv.optimal_control(lv.problems.load("hopper-gait"))
    figure, axes = panels(2, 6.4)
    for name in gait.system.coordinates:
        axes[0].plot(gait.t, gait[name], label=name)
    for values, label in zip(gait.u.T, ("torque of the hip (N m)", "force of the leg (N)"), strict=True):
        axes[1].step(gait.t[:-1], values, where="post", label=label)
    for ax, label in zip(axes, ("coordinates (m, rad)", "inputs"), strict=True):
        ax.set(xlabel="$t$ (s)", ylabel=label)
        ax.legend(fontsize=7)
    return figure


# -- geometric structure ----------------------------------------------------------------------------------------------
@picture
def lie_poisson() -> Figure:
    """Lengths and energies of four coupled spins by three schemes."""
    rng = np.random.default_rng(1)
    model = lv.Spins(
        4,
        spin_energy=lambda s, k: k.B * s[2] - 0.5 * s[2] ** 4,
        pair_energy=lambda a, b: -(a @ b) - 0.3 * a[2] * b[0] ** 2,
        pairs=[(i, (i + 1) % 4) for i in range(4)],
        spin_parameters=dict(B=[0.1, 0.5, -0.3, 0.7]),
    )
    x0 = rng.normal(size=(4, 3))
    figure, axes = panels(2, height=2.6)
    for color, scheme in zip(PALETTE, ("spherical-midpoint", "collective-gauss-2", "heun"), strict=False):
        run = lv.simulate(model, x0=x0, scheme=scheme, h=0.02, t_end=60.0, every=4)
        lengths = np.linalg.norm(run.x.reshape(-1, 4, 3), axis=2)
        energy = run.observe("hamiltonian")
        for panel, values in zip(
            axes, (np.abs(lengths / lengths[0] - 1).max(axis=1), np.abs(energy - energy[0])), strict=True
        ):
            panel.semilogy(run.t[1:], np.maximum(values[1:], 1e-17), color=color, linewidth=0.8, label=scheme)
    for panel, label in zip(axes, ("largest relative change of a length", "change of the energy"), strict=True):
        panel.set_xlabel("t")
        panel.set_ylabel(label)
    axes[0].legend(loc="center right", fontsize="small")
    return figure


@picture
def modified_hamiltonian() -> Figure:
    """Truncated modified Hamiltonians along runs of two methods, and the drift of Heun's method with its prediction."""
    pendulum = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: -lv.math.cos(q[0]))
    start = dict(q0=[1.0], p0=[0.0])
    figure, axes = panels(2, height=2.6)
    run = lv.simulate(pendulum, **start, scheme="implicit-midpoint", h=0.1, t_end=40.0)
    for color, order in zip(PALETTE, (0, 2, 4), strict=False):
        values = lv.study.modified_hamiltonian(pendulum, "implicit-midpoint", order).along(run)
        change = np.maximum(np.abs(values - values[0]), 1e-17)
        axes[0].semilogy(run.t[1:], change[1:], color=color, linewidth=0.8, label=f"up to $h^{order}$")
    axes[0].set_ylabel("change of the modified energy")
    axes[0].set_ylim(bottom=1e-18)
    axes[0].legend(loc="lower center", fontsize="small", ncols=3)
    heun = lv.simulate(pendulum, **start, scheme="heun", h=0.05, t_end=40.0)
    rates = lv.study.modified_equation(pendulum, "heun", 3).energy_rate(np.hstack([heun.q, heun.p]), 0.05)
    predicted = np.concatenate([[0.0], np.cumsum((rates[1:] + rates[:-1]) / 2 * np.diff(heun.t))])
    energy = heun.observe("hamiltonian")
    axes[1].plot(heun.t, energy - energy[0], color=PALETTE[0], label="Heun, measured")
    axes[1].plot(heun.t, predicted, color=PALETTE[1], linestyle="--", label="modified equation")
    axes[1].set_ylabel("change of the energy")
    axes[1].legend(loc="upper left", fontsize="small")
    for panel in axes:
        panel.set_xlabel("t (s)")
    return figure
