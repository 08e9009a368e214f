"""The wheel: it contains the package with its data and nothing else, and runs where it is installed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import livens, pathlib, sys
assert pathlib.Path(livens.__file__).is_relative_to(sys.argv[1]), livens.__file__
run = livens.simulate(livens.problems.load("simple-pendulum"), t_end=0.1)
assert run.summary.max_energy_drift < 1e-13
run.animate(pathlib.Path(sys.argv[1]) / "film.html")
"""


def test_the_installed_wheel_simulates_and_animates(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    built = subprocess.run(build, capture_output=True, text=True, cwd=tmp_path)
    if built.returncode and ("hatchling" in built.stderr or "No module named pip" in built.stderr):
        pytest.skip("the build backend hatchling, or pip, is not available")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("livens-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"livens"}
    assert {"livens/py.typed", "livens/lab/assets/gallery.json", "livens/viewer/assets/three.min.js"} <= {*names}
    target = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(target)  # a wheel without scripts is installed by extraction
    settings = os.environ | {"PYTHONPATH": str(target)}
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(target)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=settings)
    assert done.returncode == 0, done.stderr
    assert (target / "film.html").stat().st_size > 1e5


def test_methods_of_later_layers_are_attributes_of_their_classes():
    """Help on a method of a class in a fresh interpreter, without an object and before its layer is imported."""
    code = """
import pydoc, livens as lv
names = [(lv.Multibody, name) for name in lv.MULTIBODY_ACCESSORS] + [(lv.Result, name) for name in lv.ACCESSORS]
for owner, name in names:
    assert name in dir(owner) and hasattr(owner, name), (owner, name)
print(pydoc.render_doc(lv.Multibody.simulate, renderer=pydoc.plaintext))
class Own(lv.Multibody):
    pass
assert Own.simulate is lv.Multibody.simulate and not hasattr(lv.Multibody, "nothing")
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "Simulate the mechanism from its consistent initial state" in output
