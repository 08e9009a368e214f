"""Pictures: what they show is what the run holds, and what cannot be drawn is said in a sentence."""

import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import livens as lv
from livens import plot
from livens.cli.plot import plot as plot_command
from livens.plot import style
from livens.plot.axis_labels import evenly_spaced, label, named_points, quantity
from livens.plot.curves import round_off, thin, thin_path
from livens.scene import shapes
from terminal import PROGRAM, livens

EPS = np.finfo(float).eps


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    """Windows of a developer's screen have no part in the tests."""
    monkeypatch.setattr(style, "_has_display", lambda: False)


@pytest.fixture(scope="module")
def linkage():
    return lv.simulate(lv.problems.load("double-four-bar"), h=1e-2, t_end=4.0)


@pytest.fixture(scope="module")
def pendulum():
    return lv.simulate(lv.problems.load("simple-pendulum"), h=1e-2, t_end=2.0)


@pytest.fixture(scope="module")
def spherical():
    return lv.simulate(lv.problems.load("spring-pendulum-spherical"))


@pytest.fixture(scope="module")
def spatial():
    return lv.simulate(lv.problems.load("spring-pendulum"))


def curves(axes):
    """Drawn data by label."""
    return {line.get_label(): line.get_xydata() for line in axes.get_lines()}


def own_system():
    oscillator = lv.System(
        "x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 2 * q[0] ** 2,
        dissipation=lambda v: 0.1 * v[0] ** 2,
    )  # fmt: skip
    return oscillator, lv.simulate(oscillator, [1.0], [0.0], scheme="livens-em", h=0.05, t_end=5.0)


# -- what is drawn ----------------------------------------------------------------------------------------------------
def test_energy(pendulum):
    figure = plot.energy(pendulum)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("$t$ (s)", "energy (J)")
    drawn = curves(axes)
    assert list(drawn) == ["kinetic", "potential", "generalized energy"]
    assert np.array_equal(drawn["kinetic"][:, 1], pendulum.observe("kinetic_energy"))
    assert np.array_equal(drawn["potential"][:, 1], pendulum.observe("potential_energy"))
    assert np.ptp(drawn["generalized energy"][:, 1]) < 1e-12
    assert figure.get_suptitle() == "simple-pendulum, livens-em, h = 0.01 s"


def test_energy_that_goes_out_is_balanced():
    _, run = own_system()
    drawn = curves(plot.energy(run).axes[0])
    assert np.ptp(drawn["generalized energy"][:, 1]) > 1
    assert np.ptp(drawn["balance"][:, 1]) < 1e-12
    increments = curves(plot.energy_increments(run).axes[0])["increment"][:, 1]
    assert increments.max() < 1e-14


def test_energy_increments_show_round_off_as_round_off(linkage):
    (axes,) = plot.energy_increments(linkage).axes
    drawn = curves(axes)["increment"]
    increments = np.abs(np.diff(linkage.observe("generalized_energy"))) / linkage.observe("generalized_energy")[0]
    floor = axes.get_yticks()[0]
    assert axes.get_yticklabels()[0].get_text() == "0" and floor < EPS
    assert np.any(increments == 0)  # or the test is none
    assert np.array_equal(drawn[:, 1], np.maximum(increments, floor))  # zeros are there, at the floor
    assert np.array_equal(drawn[:, 0], linkage.t[1:])
    (band,) = axes.patches
    top = band.get_y() + band.get_height()
    assert increments.max() < top < axes.get_ylim()[1] / 50  # well inside a band that does not fill the picture
    assert top == pytest.approx(100 * round_off(linkage, "generalized_energy") / linkage.observe("total_energy")[0])
    assert "E_0" in axes.get_ylabel()


def test_energy_increments_of_a_scheme_without_conservation_leave_the_band(spherical):
    run = lv.simulate(lv.problems.load("spring-pendulum-spherical"), scheme="livens-midpoint")
    (axes,) = plot.energy_increments(run).axes
    (band,) = axes.patches
    assert np.median(curves(axes)["increment"][:, 1]) > 1e3 * (band.get_y() + band.get_height())
    assert axes.get_ylim()[1] < 1


def test_energy_increments_where_the_energy_is_zero(pendulum):
    (axes,) = plot.energy_increments(pendulum).axes
    assert r"\max T" in axes.get_ylabel()
    scale = pendulum.observe("kinetic_energy").max()
    largest = np.abs(np.diff(pendulum.observe("generalized_energy"))).max() / scale
    assert curves(axes)["increment"][:, 1].max() == largest


def test_constraints(linkage):
    upper, lower = plot.constraints(linkage).axes
    positions, velocities = (axes.get_lines()[0].get_ydata() for axes in (upper, lower))
    worst = np.abs(linkage.observe("velocity_constraint")).max(axis=1)
    assert positions.max() == np.abs(linkage.observe("constraint")).max() < 1e-14
    assert velocities.max() == worst.max() > 1e-6
    assert "g(q)" in upper.get_ylabel() and lower.get_xlabel() == "$t$ (s)"
    assert {axes.get_yscale() for axes in (upper, lower)} == {"log"}


def test_momenta(spherical, spatial):
    (axes,) = plot.momenta(spherical).axes
    drawn = curves(axes)
    (band,) = axes.patches
    assert list(drawn) == [r"$p_{\phi}$"]
    assert drawn[r"$p_{\phi}$"][:, 1].max() < band.get_y() + band.get_height()
    drift = curves(plot.momenta(spatial).axes[0])["angular momentum"][:, 1].max()
    assert drift == pytest.approx(spatial.summary.momentum_drift["angular_momentum"])


def test_coordinates(pendulum, linkage):
    figure = plot.coordinates(pendulum)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["$x$ (m)", "$y$ (m)"]
    assert np.array_equal(figure.axes[1].get_lines()[0].get_ydata(), pendulum.q[:, 1])
    many = plot.coordinates(linkage)
    assert len(many.axes) == 8 and "8 of 30 coordinates" in many.get_suptitle()
    chosen = plot.coordinates(linkage, ["upper0.y"])
    (axes,) = chosen.axes
    assert axes.get_title(loc="left") == "upper0.y (m)" and axes.get_xlabel() == "$t$ (s)"
    assert np.array_equal(axes.get_lines()[0].get_ydata(), linkage.q[:, 19])


def test_constant_coordinates_stay_calm(linkage):
    (axes,) = plot.coordinates(linkage, "upper0.d1x").axes
    low, high = axes.get_ylim()
    assert low < 0.6 and high > 1.4  # not the last digits of 1.0 over the whole panel


def test_multipliers(pendulum, linkage):
    (axes,) = plot.multipliers(pendulum).axes
    assert "length of the rod" in axes.get_title(loc="left")
    assert np.array_equal(axes.get_lines()[0].get_ydata(), pendulum.multipliers[:, 0])
    many = plot.multipliers(linkage)
    assert len(many.axes) == 8 and "8 largest of 14" in many.get_suptitle()
    joints = [i for i, name in enumerate(linkage.info.constraint_names) if "d1" not in name and "d2" not in name]
    largest = np.abs(linkage.multipliers[:, joints]).max()
    assert max(abs(a.get_lines()[0].get_ydata()).max() for a in many.axes) == largest


def test_phase_portrait(pendulum, spherical, linkage):
    (axes,) = plot.phase_portrait(pendulum, "y").axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("$y$ (m)", r"$\dot{y}$ (m/s)")
    assert np.array_equal(axes.get_lines()[0].get_xydata(), np.column_stack([pendulum.q[:, 1], pendulum.v[:, 1]]))
    (axes,) = plot.phase_portrait(spherical).axes
    assert axes.get_xlabel() == r"$\phi$ (rad)"  # it moves most
    assert plot.phase_portrait(linkage).axes[0].get_xlabel() == "upper0.x (m)"


def test_newton(linkage, spherical):
    upper, lower = plot.newton(linkage).axes
    drawn = curves(upper)
    assert drawn["every step"][:, 1].max() == linkage.newton_iterations.max()
    assert drawn["mean of 4 steps"][:, 1].mean() == pytest.approx(linkage.newton_iterations[1:].mean())
    assert set(lower.get_lines()[0].get_ydata()) == {0.01} and lower.get_ylim()[0] == 0
    upper, _ = plot.newton(spherical).axes
    assert np.array_equal(np.sort(curves(upper)["every step"][:, 0]), spherical.t[1:])  # short: every step is a dot


def test_trajectory(linkage, pendulum, spatial):
    (axes,) = plot.trajectory(linkage).axes
    drawn = curves(axes)
    radius = np.hypot(*(drawn["upper0"] - [0.5, 0]).T)
    assert np.allclose(radius, 1) and axes.get_aspect() == 1
    assert [text.get_text() for text in axes.get_legend().get_texts()] == "lower0 lower1 lower2 upper0 upper1".split()
    (axes,) = plot.trajectory(pendulum).axes
    assert axes.get_legend() is None and axes.get_xlabel() == "$x$ (m)"
    (axes,) = plot.trajectory(spatial).axes
    assert axes.get_zlabel() == "$z$ (m)"
    assert np.array_equal(np.array(axes.get_lines()[0].get_data_3d()).T, thin_path(spatial.q))


def test_trajectory_of_many_points():
    run = lv.simulate(lv.problems.load("n-four-bar", N=6), h=1e-2, t_end=0.2)
    figure = plot.trajectory(run)
    assert "8 of 13 points" in figure.get_suptitle()
    assert len(figure.axes[0].get_legend().get_texts()) == 8


def test_labels_in_space_are_not_cut_off(spatial):
    figure = plot.trajectory(spatial)
    figure.draw_without_rendering()
    for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis, figure.axes[0].zaxis):
        box = axis.get_tightbbox().transformed(figure.transFigure.inverted())
        assert box.x0 > -0.01 and box.y0 > -0.01 and box.x1 < 1.01 and box.y1 < 1.01


def test_snapshots(linkage):
    (axes,) = plot.snapshots(linkage).axes
    bars = [line for line in axes.get_lines() if len(line.get_xydata()) == 2]
    assert len(bars) == 6 * 5
    assert np.allclose([np.linalg.norm(np.diff(bar.get_xydata(), axis=0)) for bar in bars], 1)
    ground = sorted(line.get_xydata()[0].tolist() for line in axes.get_lines() if len(line.get_xydata()) == 1)
    assert np.allclose(ground, [[0, 0], [1, 0], [2, 0]])
    brightness = [int(to_hex(bar.get_color())[1:3], 16) for bar in bars[::5]]
    assert brightness == sorted(brightness, reverse=True)
    assert np.allclose(bars[0].get_xydata(), [[0, 0], [0, 1]])  # upright at the start
    (axes,) = plot.snapshots(linkage, [0.5, 1.0]).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["$t$ = 0.50 s", "$t$ = 1.00 s"]


# -- thinning and names -----------------------------------------------------------------------------------------------
def test_thinning_keeps_extremes():
    random = np.random.default_rng(0)
    t = np.sort(random.uniform(0, 7, 300_000))
    y = random.normal(size=t.size)
    few_t, few = thin(t, y, 500)
    assert len(few) <= 4 * 500 and np.all(np.diff(few_t) >= 0)
    column, few_column = (np.minimum((x - t[0]) / (t[-1] - t[0]) * 500, 499).astype(int) for x in (t, few_t))
    for c in (0, 17, 250, 499):
        assert few[few_column == c].max() == y[column == c].max()
        assert few[few_column == c].min() == y[column == c].min()
    assert (few_t[0], few_t[-1]) == (t[0], t[-1])
    assert len(thin(t[:100], y[:100], 500)[1]) == 100  # few points are left alone


def test_long_runs_are_thinned():
    run = lv.simulate(lv.problems.load("simple-pendulum"), h=1e-3, t_end=50.0)
    (axes,) = plot.energy(run).axes
    for data in curves(axes).values():
        assert len(data) <= 8000
    kinetic = curves(axes)["kinetic"][:, 1]
    assert kinetic.max() == run.observe("kinetic_energy").max()


def test_paths_are_thinned_by_pixels():
    angle = np.linspace(0, 2 * np.pi, 500_000)
    circle = np.column_stack([1e-3 * np.cos(angle), 50 * np.sin(angle)])  # axes of different units
    few = thin_path(circle, 1000)
    assert 1000 < len(few) < 10_000
    gaps = np.abs(np.diff(few, axis=0)).max(axis=0) / np.ptp(circle, axis=0)
    assert gaps.max() < 3e-3 and np.array_equal(few[-1], circle[-1])
    assert len(thin_path(np.zeros((50, 2)))) == 2  # at rest


def test_names():
    assert label("x") == "$x$ (m)" and label("lower0.x") == "lower0.x (m)" and label("theta") == r"$\theta$ (rad)"
    assert label("q2") == "$q_{2}$" and label("bar.d1x", rate=True) == "rate of bar.d1x (1/s)"
    assert label("price in $") == r"price in \$"
    assert quantity("p_phi") == r"$p_{\phi}$" and quantity("angular_momentum") == "angular momentum"
    assert named_points(["x", "a.x", "a.y", "y", "b.x", "a.z"]) == {"": [0, 3], "a": [1, 2, 5]}
    assert evenly_spaced(range(30), 3) == [0, 14, 29] and evenly_spaced([4, 5], 8) == [4, 5]


# -- style and files --------------------------------------------------------------------------------------------------
def test_the_users_settings_stay_and_do_not_matter(pendulum, tmp_path):
    before = dict(matplotlib.rcParams)
    plain = plot.energy(pendulum)
    plain.savefig(tmp_path / "plain.png")
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"lines.linewidth": 9.0, "font.size": 30.0, "axes.grid": True}):
        plot.energy(pendulum).savefig(tmp_path / "odd.png")
        assert matplotlib.rcParams["lines.linewidth"] == 9.0
    assert (tmp_path / "plain.png").read_bytes() == (tmp_path / "odd.png").read_bytes()


def test_plots_belong_to_a_result(pendulum, linkage, tmp_path):
    plots = plot.Plots(pendulum)
    figure = plots.energy()
    assert isinstance(figure, Figure)
    for suffix, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        plots.phase_portrait("y", path=tmp_path / f"phase.{suffix}")
        assert (tmp_path / f"phase.{suffix}").read_bytes().startswith(start)
    every = plot.Plots(linkage)
    for name in set(plot.PLOTS) - {"momenta", "balance", "algebraic", "step_sizes"}:
        assert isinstance(getattr(every, name)(), Figure)


def test_notebooks_show_figures(pendulum):
    assert plot.energy(pendulum)._repr_png_().startswith(b"\x89PNG")


def test_windows_where_there_is_a_screen(pendulum, monkeypatch, tmp_path):
    from matplotlib import pyplot

    backend = matplotlib.get_backend()
    pyplot.switch_backend("agg")
    monkeypatch.setattr(style, "_has_display", lambda: True)
    figure = plot.Plots(pendulum).energy()
    try:
        assert pyplot.fignum_exists(figure.number)  # plt.show() shows it
        plot.Plots(pendulum).energy(path=tmp_path / "energy.png")
        plot.energy(pendulum)
        plot.save_all(pendulum, tmp_path, ["newton"])
        assert pyplot.get_fignums() == [figure.number]  # files and plain functions leave nothing to close
    finally:
        pyplot.close(figure)
        pyplot.switch_backend(backend)


def names_of(paths):
    return [path.name for path in paths]


def test_save_all_draws_what_makes_sense(linkage, spherical, tmp_path):
    paths = plot.save_all(linkage, tmp_path / "new" / "folder")
    assert names_of(paths) == [
        f"double-four-bar-{name}.png"
        for name in (
            "energy", "energy-increments", "constraints", "forces", "coordinates", "phase-portrait", "newton",
            "trajectory", "snapshots",
        )
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    assert names_of(plot.save_all(spherical, tmp_path, suffix="svg")) == [
        f"spring-pendulum-spherical-{name}.svg"
        for name in (
            "energy",
            "energy-increments",
            "momenta",
            "coordinates",
            "phase-portrait",
            "newton",
            "trajectory",
            "snapshots",
        )
    ]
    assert names_of(plot.save_all(linkage, tmp_path, "energy-increments, newton", "pdf")) == [
        "double-four-bar-energy-increments.pdf",
        "double-four-bar-newton.pdf",
    ]


def test_save_all_without_the_model(tmp_path):
    system, run = own_system()
    path = run.save(tmp_path / "mine.h5")
    assert names_of(plot.save_all(lv.load(path), tmp_path)) == [
        f"mine-{name}.png" for name in ("coordinates", "phase-portrait", "newton")
    ]
    assert "mine-energy.png" in names_of(plot.save_all(lv.load(path, system=system), tmp_path))
    with pytest.raises(lv.InputError, match="does not hold the model"):
        plot.save_all(lv.load(path), tmp_path, ["energy"])


def test_the_file_of_a_mechanism_is_read_with_the_mechanism(tmp_path):
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    rod = mb.rod("rod", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    mb.revolute("hinge", mb.ground, rod, at=rod.a, axis="y")
    run = mb.simulate(t_end=0.1, h=1e-2, out=tmp_path / "mechanism.h5")
    loaded = lv.load(tmp_path / "mechanism.h5", system=mb)
    assert np.array_equal(loaded["hinge.angle"], run["hinge.angle"])
    assert lv.resume(tmp_path / "mechanism.h5", system=mb, t_end=0.2).t[-1] == pytest.approx(0.2)
    with pytest.raises(lv.InputError, match="system must be the model"):
        lv.load(tmp_path / "mechanism.h5", system="mechanism")


def test_save_all_of_a_run_that_stored_little(tmp_path):
    problem = lv.problems.load("simple-pendulum")
    run = lv.simulate(problem, t_end=0.1, store="q")
    names = ("coordinates", "trajectory", "snapshots")
    assert names_of(plot.save_all(run, tmp_path)) == [f"simple-pendulum-{name}.png" for name in names]
    with pytest.raises(lv.InputError, match="multipliers"):
        plot.multipliers(run)
    run = lv.simulate(problem, t_end=0.1, store="q,v,p")
    assert "simple-pendulum-energy.png" in names_of(plot.save_all(run, tmp_path))
    assert not any("newton" in name for name in names_of(plot.save_all(run, tmp_path)))


def test_a_run_without_steps_can_be_drawn(linkage, tmp_path):
    rows = {name: getattr(linkage, name)[:1] for name in linkage.stored}
    run = lv.Result(rows, linkage.record, system=linkage.system)
    drawn = names_of(plot.save_all(run, tmp_path))
    assert "double-four-bar-energy.png" in drawn and "double-four-bar-snapshots.png" in drawn
    assert "double-four-bar-newton.png" not in drawn and "double-four-bar-energy-increments.png" not in drawn
    with pytest.raises(lv.InputError, match="no steps"):
        plot.newton(run)


@pytest.mark.parametrize(
    "draw, words",
    [
        (lambda r: plot.constraints(r), "no constraints"),
        (lambda r: plot.multipliers(r), "no constraints"),
        (lambda r: plot.phase_portrait(r, "thetta"), "did you mean 'theta'"),
        (lambda r: plot.coordinates(r, ["z"]), "no coordinate 'z'"),
        (lambda r: plot.save_all(r, ".", ["enrgy"]), "did you mean 'energy'"),
        (lambda r: plot.save_all(r, ".", suffix="jpg"), "cannot be written as 'jpg'"),
        (lambda r: plot.Plots(r).energy(path="/nowhere/energy.png"), "cannot write the figure"),
    ],
)
def test_what_cannot_be_drawn(spherical, draw, words):
    with pytest.raises(lv.InputError, match=words):
        draw(spherical)


def test_a_model_that_does_not_say_how_it_looks():
    _, run = own_system()
    for draw in (plot.trajectory, plot.snapshots):
        with pytest.raises(lv.InputError, match="Define visuals"):
            draw(run)


def test_snapshots_in_space(spherical):
    (axes,) = plot.snapshots(spherical, [0.0, 0.5]).axes
    assert axes.get_zlabel() == "$z$ (m)" and len(axes.get_lines()) > 4
    (axes,) = plot.trajectory(spherical).axes
    assert np.allclose(np.array(axes.get_lines()[0].get_data_3d()).T[0], [1.05, 0, 0])


def test_no_momenta_without_symmetries(linkage):
    with pytest.raises(lv.InputError, match="no symmetries"):
        plot.momenta(linkage)


# -- command line -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def folder(pendulum, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    pendulum.save(folder / "swing.h5")
    return folder


def test_command_line(folder):
    done = livens("plot", "swing.h5", "--out", "figures", cwd=folder)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.split()
    assert lines[0] == "figures/swing-energy.png" and len(lines) == 9
    assert all((folder / line).is_file() for line in lines)
    done = livens("plot", "swing.h5", "--plots", "energy,constraints", "--out", "some", cwd=folder)
    assert done.stdout.split() == ["some/swing-energy.png", "some/swing-constraints.png"]
    done = livens("plot", "swing.h5", "--plots", "phase-portrait", "--out", "phase.pdf", cwd=folder)
    assert done.stdout.split() == ["phase.pdf"] and (folder / "phase.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["swing.h5", "--plots", "enrgy"], "did you mean 'energy'"),
        (["swing.h5", "--out", "one.png"], "select it with --plots"),
        (["missing.h5"], "there is no file 'missing.h5'"),
    ],
)
def test_bad_input_is_a_sentence(folder, arguments, words):
    done = livens("plot", *arguments, cwd=folder)
    assert done.returncode == 2 and words in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


@pytest.mark.parametrize(
    "what, out, words",
    [
        ("", ".", "known: algebraic, balance, constraints"),
        ("energy,nothing-like-it", ".", "unknown plot 'nothing_like_it'"),
        ("momenta", ".", "no symmetries"),
        ("energy,newton", "one.pdf", "select it with --plots"),
        ("energy", "one.jpg", "cannot be written as 'jpg'"),
        ("energy", "nowhere/one.png", "cannot write the figure"),
        (None, "swing.h5", "cannot create the folder"),
    ],
)
def test_other_bad_input(folder, monkeypatch, what, out, words):
    monkeypatch.chdir(folder)
    with pytest.raises(lv.InputError, match=words):
        plot_command(Path("swing.h5"), what, Path(out))


def test_a_missing_screen_does_not_matter(folder):
    environment = {"PATH": "/usr/bin", "MPLBACKEND": "tkagg", "HOME": str(folder)}
    done = subprocess.run(
        [*PROGRAM, "plot", "swing.h5", "--plots", "energy"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.split() == ["swing-energy.png"]


def test_import_of_livens_is_light():
    code = "import sys, livens, livens.results.result; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# -- what is chosen ---------------------------------------------------------------------------------------------------
def test_joint_forces_come_before_multipliers():
    """In newtons; multipliers of unit length, of which two thirds hold bars together, are left out."""
    run = lv.simulate(lv.problems.load("double-four-bar"), h=1e-2, t_end=1.0)
    assert plot.PLOTS["forces"].is_applicable(run) and not plot.PLOTS["multipliers"].is_applicable(run)
    titles = [axes.get_title(loc="left") for axes in run.plot.forces().axes]
    assert "lower0-upper0 (N)" in titles and len(titles) == 7
    shown = [axes.get_title(loc="left") for axes in run.plot.multipliers().axes]
    assert len(shown) == 8 and not any("|d1|" in title or "d1.d2" in title for title in shown)
    angles = lv.simulate(lv.problems.load("andrews-squeezer"), t_end=1e-3)
    assert not plot.PLOTS["forces"].is_applicable(angles) and plot.PLOTS["multipliers"].is_applicable(angles)
    with pytest.raises(lv.InputError, match="no forces to draw"):
        angles.plot.forces()


def test_what_does_not_change_is_left_out():
    system = lv.System("x y z", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[2])
    run = lv.simulate(system, q0=[0, 0, 0], v0=[1, 0, 0], h=0.1, t_end=1.0)
    figure = run.plot.coordinates()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["$x$ (m)", "$z$ (m)"]
    assert "2 of 3 coordinates" in figure.get_suptitle()
    assert len(run.plot.coordinates(["y"]).axes) == 1


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("kind", sorted(shapes.SHAPE_TYPES))
def test_snapshots_of_every_kind_of_shape(kind, dimension):
    def look(q):
        p, other = q[:dimension], [1.0, 2.0, 3.0][:dimension]
        made = {
            "box": lambda: shapes.box(p, [1.0, 0.5, 0.2][:dimension]),
            "sphere": lambda: shapes.sphere(p, 0.3),
            "cylinder": lambda: shapes.cylinder(p, other, 0.2),
            "cone": lambda: shapes.cone(p, other, 0.2),
            "ring": lambda: shapes.ring(p, 0.3),
            "polygon": lambda: shapes.polygon([p, other, [0.0] * dimension]),
            "cable": lambda: shapes.cable([p, other]),
            "path": lambda: shapes.path([p, other]),
            "ground": lambda: shapes.ground(p),
            "axes": lambda: shapes.axes(p),
            "mesh": lambda: shapes.mesh(p, vertices=[*np.eye(3), [0, 0, 0]], faces=[[0, 1, 2], [0, 2, 3], [1, 0, 3]]),
        }
        drawn = made.get(kind, lambda: getattr(shapes, kind)(p, other))()
        return [drawn, shapes.rod([0.0] * dimension, p)]

    names = "x y z"[: 2 * dimension - 1]
    system = lv.System(names, kinetic=lambda v: v @ v / 2, potential=lambda q: q[1], visual=look)
    run = lv.simulate(system, q0=[0.5] * dimension, v0=[1.0] * dimension, h=0.1, t_end=1.0)
    (axes,) = run.plot.snapshots([0.0, 1.0]).axes
    assert (axes.name == "3d") == (dimension == 3)
    assert len(axes.lines) >= (2 if kind in ("path", "ground", "axes") else 4)


def test_a_file_in_place_of_names_suggests_the_path(linkage, tmp_path):
    for draw in (linkage.plot.coordinates, linkage.plot.phase_portrait, linkage.plot.snapshots):
        for path in (tmp_path / "c.png", str(tmp_path / "c.PDF")):
            with pytest.raises(lv.InputError, match="is a file, not what is plotted: save the figure with path="):
                draw(path)
    assert linkage.plot.coordinates(path=tmp_path / "c.png") and (tmp_path / "c.png").exists()
