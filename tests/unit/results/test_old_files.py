"""Result files of the first version, one for each kind of run: they load, and their runs go on."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import livens as lv
from livens.results.checkpoint import from_arrays

RUNS = Path(__file__).parents[2] / "data" / "runs"
ENDS = json.loads((RUNS / "ends.json").read_text())


def model_of(name):
    """The models that are not in their files."""
    if name == "controlled-own-model":
        return lv.FirstOrder("angle rate", rhs=lambda x: [x[1], -lv.math.sin(x[0])])
    if name == "multibody-equations-own-model":
        equations = lv.MultibodyEquations(
            "x y",
            kinetic=lambda v: v @ v / 2,
            potential=lambda q: 9.81 * q[1],
            constraints=lambda q: [(q @ q - 1) / 2],
        )
        return equations.formulate("ggl")
    if name == "failed-own-model":
        return lv.FirstOrder("x", rhs=lambda x: [x[0] ** 2])
    return None


@pytest.mark.parametrize("name", sorted(path.stem for path in RUNS.glob("*.h5")))
def test_they_load(name):
    run = lv.load(RUNS / f"{name}.h5", system=model_of(name))
    assert run.status == ("failed" if name.startswith("failed") else "complete")
    assert len(run.t) >= 5 and np.all(np.isfinite(run.t)) and run.t[0] == 0.0
    energy = run.summary.energy
    if energy and {"q", "v", "p"} <= set(run.stored):
        assert np.isfinite(run.observe(energy)).all()


@pytest.mark.parametrize("name", sorted(ENDS))
def test_they_go_on(name, tmp_path):
    """To where the version that wrote them was at the same time, to round-off."""
    path = tmp_path / "run.h5"
    shutil.copy(RUNS / f"{name}.h5", path)
    end = ENDS[name]
    events = [lv.Event(lambda q: q[1] + 0.5, name="half way", direction=-1)] if name == "events" else []
    run = lv.resume(path, t_end=end["t_end"], system=model_of(name), events=events)
    assert run.status == "complete" and run.t[-1] == end["t_end"]
    for variable, value in end["final"].items():
        found = run.last(variable)
        # controlled steps of the first version ended where its run ended; a longer run took others there
        tolerance = 1e-6 if name.startswith("controlled") else 1e-11
        assert np.abs(found - value).max() <= tolerance * (1 + np.abs(value).max()), variable
    if not name.startswith("controlled"):
        assert len(run.t) == end["rows"]
    # and once more: the file is of the present version now
    again = lv.load(path, system=model_of(name))
    assert set(again.record.checkpoint) >= {"carry", "march", "recorder", "extremes", "run"}


@pytest.mark.parametrize(("more", "time"), [({}, 2.0 + 40 * 0.25), ({"time": 11.5}, 11.5)])
def test_checkpoints_of_the_first_version_say_where_they_are(more, time):
    """Checkpoints of equal steps contain the number of the step."""
    names = "z x dx scale row_order column_order rows monitor_first monitor_last monitor_largest newton_iterations"
    old = {name: np.arange(3.0) for name in names.split()} | {"step": 40} | more
    found = from_arrays(old, SimpleNamespace(t0=2.0, h=0.25))
    assert found["carry"]["time"] == time and found["march"]["step"] == found["recorder"]["step"] == 40
    assert found["extremes"].keys() == {"first", "last", "largest"}
