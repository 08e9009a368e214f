"""Stroboscopic pictures of mechanisms: bodies at equal times above the forces of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from registry import picture

import livens as lv
from livens import math as m
from livens.plot.style import PALETTE, new_figure
from livens.scene.outlines import SURROUNDINGS, extent, outlines

#: Line of sight of pictures in space: horizontal angle, height above the horizon.
_AZIMUTH, _ELEVATION = np.deg2rad(-60.0), np.deg2rad(18.0)
#: Shapes of force elements, drawn in the second colour.
_CONNECTIONS = ("spring", "damper", "cable", "path", "arrow")


def project(points: np.ndarray, side: bool) -> np.ndarray:
    """Return the points in the plane of the picture: a parallel projection, or the x-z plane if `side`."""
    points = np.column_stack([points, np.zeros((len(points), 3 - points.shape[1]))])
    if side:
        return points[:, [0, 2]]
    right = np.array([-np.sin(_AZIMUTH), np.cos(_AZIMUTH), 0.0])
    up = np.array([-np.sin(_ELEVATION) * np.cos(_AZIMUTH), -np.sin(_ELEVATION) * np.sin(_AZIMUTH), np.cos(_ELEVATION)])
    return points @ np.column_stack([right, up])


def _circle(line: np.ndarray, side: bool) -> np.ndarray:
    """Return the contour of a sphere with this great circle."""
    line = np.column_stack([line, np.zeros((len(line), 3 - line.shape[1]))])
    centre = 0.5 * (line.min(axis=0) + line.max(axis=0))
    radius = np.linalg.norm(line[0] - centre)
    angle = np.linspace(0, 2 * np.pi, 60)
    return project(centre[None], side) + radius * np.column_stack([np.cos(angle), np.sin(angle)])


def stroboscope(axes: Axes, run: Any, count: int = 5, side: bool = False) -> None:
    """Draw the bodies of a run at equal times, from light to dark."""
    rows = np.linspace(0, len(run.t) - 1, count).astype(int)
    scene = run.scene
    pose = scene.evaluate(run.q[rows], run.t[rows])
    size = extent(scene, pose)
    for i, alpha in enumerate(np.linspace(0.25, 1.0, count)):
        for outline in outlines(scene, pose, i, size):
            if outline.shape_type in SURROUNDINGS:
                continue
            colour = PALETTE[1] if outline.shape_type in _CONNECTIONS else PALETTE[0]
            for line in outline.lines:
                points = project(line, side)
                if outline.shape_type == "sphere" and len(line) > 2:
                    points = _circle(line, side)
                style = "o" if len(line) == 1 else "-"
                axes.plot(*points.T, style, color=colour, alpha=alpha, linewidth=0.8, markersize=3)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.set_axis_off()


def strip(cases: Sequence[tuple[str, Callable[[], tuple[lv.Multibody, float]], str, Sequence[str]]]) -> Figure:
    """Return a figure with a column per case: title, mechanism and its duration, axis label, results by name."""
    figure = new_figure(2.0 * len(cases), 3.0)
    grid = figure.subplots(2, len(cases), squeeze=False)
    for (title, build, label, names), above, below in zip(cases, *grid, strict=True):
        mb, t_end = build()
        run = mb.simulate(t_end=t_end, h=t_end / 600)
        stroboscope(above, run, side=build not in _SPATIAL)
        above.set_title(title)
        for name in names:
            component = "xyz".find(name[-1]) if name[-2] == " " else -1
            values = run[name[:-2]][:, component] if component >= 0 else run[name]
            below.plot(run.t, values, label=name)
        below.set(xlabel="$t$ (s)", ylabel=label)
        below.margins(y=0.1)
        below.legend(fontsize=5.5)
    return figure


#: Mechanisms that are drawn in space; the others move in the x-z plane. Filled by `spatial`.
_SPATIAL: set[Callable[[], tuple[lv.Multibody, float]]] = set()


def spatial(build: Callable[[], tuple[lv.Multibody, float]]) -> Callable[[], tuple[lv.Multibody, float]]:
    """Mark a mechanism as spatial."""
    _SPATIAL.add(build)
    return build


# -- joints -----------------------------------------------------------------------------------------------------------
@picture
def joint_kinds() -> Figure:
    kinds = "fixed revolute prismatic cylindrical screw universal spherical planar point_on_line point_on_plane"
    axis: dict[str, Any] = {kind: dict(axis=[0.8, 0, -0.6]) for kind in kinds.split()}
    axis |= dict(fixed={}, spherical={}, universal=dict(axis="x", second_axis="y"), revolute=dict(axis="y"))
    axis |= dict(screw=dict(axis="z", lead=2.0))
    axis |= {kind: dict(axis=[0.5, 0, 0.9]) for kind in ("planar", "point_on_plane")}
    figure = new_figure(7.2, 3.4)
    for ax, kind in zip(figure.subplots(2, 5).ravel(), kinds.split(), strict=True):
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        box = mb.box("box", at=[0.6, 0.1, 0], size=[0.8, 0.4, 0.3], mass=1)
        getattr(mb, kind)("joint", mb.ground, box, at=[0, 0, 0], **axis[kind])
        run = mb.simulate(t_end=0.45, h=2e-3)
        stroboscope(ax, run, count=4)
        path = run["box.position"] + np.einsum("tij,j->ti", run["box.rotation"], [-0.6, -0.1, 0.0])
        ax.plot(*project(path, side=False).T, color=PALETTE[1], linewidth=1.5)
        ax.plot(*project(np.zeros((1, 3)), side=False).T, "o", color="black", markersize=3)
        ax.set_title(kind.replace("_", " "))
    return figure


def _gear() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    small = mb.cylinder("small", at=[0, 0, 0], axis="y", length=0.1, radius=0.25, mass=1)
    large = mb.cylinder("large", at=[0.75, 0, 0], axis="y", length=0.1, radius=0.5, mass=4)
    one = mb.revolute("small axle", mb.ground, small, axis="y")
    two = mb.revolute("large axle", mb.ground, large, axis="y")
    mb.gear("teeth", one, two, ratio=-0.5)
    mb.motor(one, torque=lambda t: 0.3 * m.cos(3 * t))
    mb.initial(one, rate=2)
    return mb, 3.0


def _rack() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody()
    wheel = mb.cylinder("wheel", at=[0, 0, 0.25], axis="y", length=0.1, radius=0.25, mass=2)
    bar = mb.box("bar", at=[0, 0, -0.05], size=[1.6, 0.1, 0.1], mass=1)
    pinion = mb.revolute("pinion", mb.ground, wheel, axis="y")
    slide = mb.prismatic("slide", mb.ground, bar, axis="x")
    mb.rack("rack", pinion, slide, radius=0.25)
    mb.spring("spring", [-1.2, 0, -0.05], bar, stiffness=20, free_length=0.8)
    return mb, 3.0


def _belt() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody()
    small = mb.cylinder("small", at=[0, 0, 0], axis="y", length=0.1, radius=0.2, mass=1)
    large = mb.cylinder("large", at=[1.2, 0, 0], axis="y", length=0.1, radius=0.4, mass=1)
    one = mb.revolute("small axle", mb.ground, small, axis="y")
    two = mb.revolute("large axle", mb.ground, large, axis="y")
    mb.belt("belt", one, two, radii=(0.2, 0.4))
    mb.motor(one, torque=0.4)
    mb.torsion_damper("oil", one, damping=0.2)
    return mb, 3.0


def _differential() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody()
    axles = []
    for name, x, radius in (("left", 0.0, 0.25), ("right", 1.6, 0.25), ("carrier", 0.8, 0.4)):
        wheel = mb.cylinder(name, at=[x, 0, 0], axis="y", length=0.1, radius=radius, mass=1)
        axles.append(mb.revolute(f"{name} axle", mb.ground, wheel, axis="y"))
    mb.differential("differential", *axles)
    mb.motor(axles[2], torque=0.3)
    mb.torsion_damper("brake", axles[0], damping=1.0)
    return mb, 4.0


@picture
def couplings() -> Figure:
    return strip([
        ("gear", _gear, "angle (rad)", ["small axle.angle", "large axle.angle"]),
        ("rack and pinion", _rack, "force (N), position (m)", ["rack.force", "slide.position"]),
        ("belt", _belt, "rate (rad/s)", ["small axle.rate", "large axle.rate"]),
        ("differential, left side braked", _differential, "rate (rad/s)",
         ["left axle.rate", "right axle.rate", "carrier axle.rate"]),
    ])  # fmt: skip


@spatial
def _rolling_disc() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    tilt = 15 * lv.deg
    axis = [0, np.cos(tilt), np.sin(tilt)]
    disc = mb.cylinder("disc", at=[0, 0, 0.5 * np.cos(tilt)], axis=axis, length=0.02, radius=0.5, mass=5)
    mb.rolling("contact", mb.ground, disc, radius=0.5, axis=axis)
    mb.initial(disc, velocity=[2.5, 0, 0], omega=(5.0 * np.array(axis)).tolist())
    return mb, 1.5


@spatial
def _knife_edge() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody(gravity=[2.0, 0, -9.81])
    blade = mb.box("blade", at=[0, 0, 0.1], size=[0.4, 0.05, 0.2], mass=1)
    mb.planar("ice", mb.ground, blade, axis="z")
    mb.knife_edge("edge", mb.ground, blade, lateral="y")
    mb.initial(blade, velocity=[0.2, 0, 0], omega=[0, 0, 2])
    return mb, 3.0


def _curve() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    bead = mb.particle("bead", at=[1, 0, 0.5], mass=1)
    mb.point_on_curve("wire", mb.ground, bead, curve=lambda x: [x[2] - x[0] ** 2 / 2, x[1]])
    return mb, 0.9


@spatial
def _surface() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    bead = mb.particle("bead", at=[1, 0, 0.5], mass=1)
    mb.point_on_surface("bowl", mb.ground, bead, surface=lambda x: x[2] - (x[0] ** 2 + x[1] ** 2) / 2)
    mb.initial(bead, velocity=[0, 1, 0])
    return mb, 2.0


def _distance() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    bob = mb.particle("bob", at=[0.8, 0, -0.6], mass=1)
    mb.distance("string", [0, 0, 0], bob)
    return mb, 2.0


@picture
def joints_held() -> Figure:
    return strip([
        ("rolling disc", _rolling_disc, "force (N)", [f"contact.force {i}" for i in "xyz"]),
        ("knife edge on a slope", _knife_edge, "force (N)", ["edge.force x", "edge.force y"]),
        ("point on a curve", _curve, "force (N)", ["wire.force x", "wire.force z"]),
        ("point on a surface", _surface, "force (N)", [f"bowl.force {i}" for i in "xyz"]),
        ("distance", _distance, "tension (N)", ["string.tension"]),
    ])  # fmt: skip


# -- forces -----------------------------------------------------------------------------------------------------------
def _point_force(add: Callable[[lv.Multibody, lv.Body], object]) -> Callable[[], tuple[lv.Multibody, float]]:
    def build() -> tuple[lv.Multibody, float]:
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        ball = mb.sphere("ball", at=[1, 0, -0.6], radius=0.1, mass=2)
        add(mb, ball)
        return mb, 1.5

    return build


def _cable() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    load = mb.sphere("load", at=[0, 0, 1.0], radius=0.08, mass=1)
    other = mb.sphere("other", at=[1, 0, 1.0], radius=0.08, mass=1.5)
    mb.cable("rope", load, [0, 0, 2], [1, 0, 2], other, stiffness=2e3, damping=15)
    mb.initial(load, velocity=[0.8, 0, 0])
    return mb, 0.7


def _gravitation() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody()
    sun = mb.sphere("sun", at=[0, 0, 0], radius=0.12, mass=4)
    planet = mb.sphere("planet", at=[1, 0, 0], radius=0.06, mass=1)
    mb.gravitation("pull", sun, planet, constant=1.0)
    mb.initial(planet, velocity=[0, 0, 1.6])
    mb.initial(sun, velocity=[0, 0, -0.4])
    return mb, 3.0


@picture
def forces_points() -> Figure:
    spring = _point_force(lambda mb, ball: mb.spring("spring", [0, 0, 0], ball, stiffness=60, free_length=1.0))
    damper = _point_force(lambda mb, ball: mb.damper("damper", [0, 0, 0], ball, damping=30))
    return strip([
        ("spring", spring, "tension (N)", ["spring.tension"]),
        ("damper", damper, "tension (N)", ["damper.tension"]),
        ("cable over two points", _cable, "tension (N)", ["rope.tension"]),
        ("gravitation", _gravitation, "force (N)", ["pull.force x", "pull.force z"]),
    ])  # fmt: skip


def _arm(
    add: Callable[[lv.Multibody, lv.Joint], object], t_end: float = 2.0, rate: float = 0.0
) -> Callable[[], tuple[lv.Multibody, float]]:
    def build() -> tuple[lv.Multibody, float]:
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1)
        hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
        add(mb, hinge)
        mb.initial(hinge, rate=rate)
        return mb, t_end

    return build


@picture
def forces_joints() -> Figure:
    spring = _arm(lambda mb, hinge: mb.torsion_spring("spring", hinge, stiffness=8.0))
    damper = _arm(lambda mb, hinge: mb.torsion_damper("oil", hinge, damping=1.0))
    motor = _arm(lambda mb, hinge: mb.motor(hinge, torque=lambda t: -6 * m.sin(3 * t), name="motor"))
    limit = _arm(lambda mb, hinge: mb.limit("stop", hinge, upper=1.0, stiffness=400, damping=20), 1.5)
    friction = _arm(lambda mb, hinge: mb.friction("bearing", hinge, torque=1.5, static=2.0, rate_tolerance=0.05), 3.0)
    return strip([
        ("torsion spring", spring, "torque (N m)", ["spring.torque"]),
        ("torsion damper", damper, "torque (N m)", ["oil.torque"]),
        ("motor", motor, "torque (N m)", ["motor.torque"]),
        ("limit", limit, "torque (N m)", ["stop.torque"]),
        ("dry friction", friction, "torque (N m)", ["bearing.torque"]),
    ])  # fmt: skip


@spatial
def _engine() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    engine = mb.box("engine", at=[0, 0, 0.5], size=[0.6, 0.4, 0.4], mass=80)
    for i, (x, y) in enumerate([(0.3, 0.2), (-0.3, 0.2), (-0.3, -0.2), (0.3, -0.2)]):
        support = dict(stiffness=[5e4] * 3 + [50] * 3, damping=[400] * 3 + [1] * 3)
        mb.bushing(f"mount{i}", mb.ground, engine, at=[x, y, 0.3], **support)
    mb.wrench("shake", engine, torque=lambda t: [200 * m.sin(40 * t), 0, 0])
    return mb, 0.6


def _bolt() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    plate = mb.box("plate", at=[0.4, 0, 0], size=[0.8, 0.3, 0.1], mass=5)
    mb.penalty_joint(
        "bolt", mb.ground, plate, joint_type="revolute", at=[0, 0, 0], axis="y", frequency=30, damping_ratio=0.1
    )
    return mb, 0.8


def _thrust() -> tuple[lv.Multibody, float]:
    mb = lv.Multibody()
    body = mb.box("body", at=[0, 0, 0], size=[0.5, 0.3, 0.2], mass=2)
    mb.wrench("thrust", body, force=[0, 0, 4], at=[0.1, 0, 0], frame="body")
    return mb, 1.5


@picture
def forces_bodies() -> Figure:
    return strip([
        ("engine on four bushings", _engine, "force (N)", ["mount0.force z", "mount3.force z"]),
        ("penalty joint", _bolt, "force (N)", ["bolt.force x", "bolt.force z"]),
        ("wrench in body axes", _thrust, "force (N)", ["thrust.force x", "thrust.force z"]),
    ])  # fmt: skip


@picture
def forces_control() -> Figure:
    gains = dict(kp=60, kd=12, reference=-0.5, name="servo")
    drive = _arm(lambda mb, hinge: mb.drive(hinge, angle=lambda t: 0.8 * m.sin(2 * t) ** 2))
    pd = _arm(lambda mb, hinge: mb.pd(hinge, **gains))
    pid = _arm(lambda mb, hinge: mb.pid(hinge, ki=80, **gains), 3.0)
    sampled = _arm(
        lambda mb, hinge: mb.sampled_controller(
            "servo", hinge, period=0.05, law=lambda t, y: 60 * (-0.5 - y[0]) - 12 * y[1],
            inputs=["hinge.angle", "hinge.rate"],
        )
    )  # fmt: skip
    return strip([
        ("drive", drive, "torque (N m)", ["hinge drive.torque"]),
        ("PD control", pd, "torque (N m)", ["servo.torque"]),
        ("PID control", pid, "torque (N m)", ["servo.torque"]),
        ("sampled control, 20 Hz", sampled, "torque (N m)", ["servo.command"]),
    ])  # fmt: skip
