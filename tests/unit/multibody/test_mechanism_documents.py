"""The documents of mechanisms: every block of Python runs, what is said to be printed is, and lines are counted."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import livens as lv

DOCS = Path(__file__).parents[3] / "docs"


def test_lines_are_counted_right():
    """As the table of the tutorial says: without imports, and without what only looks at the mechanism."""
    text = (DOCS / "howto/short-mechanisms.md").read_text(encoding="utf-8")
    counted = [int(number) for number in re.findall(r"\| (\d+) \|", text)]
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[-3:]
    first = re.findall(
        r"```python\n(.*?)```", (DOCS / "howto/build-mechanisms.md").read_text(encoding="utf-8"), re.DOTALL
    )[0]
    assert counted == [lines(block) for block in (first, *blocks)]
    assert all(
        number <= most for number, most in zip(counted, (12, 15, 6, 12), strict=True)
    )  # crank, arm, chain, Bricard


def lines(block):
    code = [line for line in block.splitlines() if line.strip()]
    return sum(not line.startswith(("import", "from", "assert", "print")) for line in code)


#: Documents with mechanisms of which every scheme keeps the energy to round-off.
LONG = [
    "howto/build-mechanisms",
    "howto/short-mechanisms",
    "reference/joints",
    "howto/forces-and-control",
    "howto/beams",
    "start/from-exudyn",
    "start/from-mujoco",
    "start/from-sympy",
    "start/overview",
    "howto/load-a-robot",
    "howto/read-results",
    "howto/simulate-a-robot-fast",
    "theory/robots",
]
#: Documents with contact, whose schemes differ.
CONTACT = [
    "howto/choose-a-contact-model",
    "howto/contact",
    "howto/contact-groups",
    "howto/rigid-impacts",
    "reference/contact-shapes",
]
#: Documents with mechanisms whose runs are short: motions that end, exports, measured inputs.
SHORT = [
    "howto/control-in-the-loop",
    "howto/ensembles",
    "howto/fmu",
    "howto/follow-the-motion",
    "howto/gymnasium",
    "howto/optimal-control",
    "howto/query-a-robot",
    "howto/save-load-resume",
    "howto/simulate-a-robot-fast",
    "howto/use-measured-data",
    "learn/export-an-fmu",
    "learn/optimal-control",
    "learn/train-an-agent",
    "reference/bodies",
]
ROOT = DOCS.parent


def drawn_in(name, monkeypatch):
    """Every mechanism that a document draws, with the options of its own last run."""
    assert callable(lv.Multibody().simulate)  # which is attached when it is first asked for
    found, run = {}, lv.Multibody.simulate

    def simulate(mb, *given, **options):
        found[id(mb)] = mb, options
        return run(mb, *given, **options)

    monkeypatch.setattr(lv.Multibody, "simulate", simulate)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / f"{name}.md").read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, f"docs/{name}.md", "exec"), names)
        for value in names.values():
            if isinstance(value, lv.Multibody):
                found.setdefault(id(value), (value, {}))
    monkeypatch.undo()
    return found.values()


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_the_examples_have_no_unstable_mode(name, tmp_path, monkeypatch):
    """A thousand seconds of each mechanism of a document, as it is run there: joints stay closed, the energy is
    accounted for."""
    monkeypatch.chdir(tmp_path)  # where some write files
    drawn = drawn_in(name, monkeypatch)
    assert drawn
    for mb, options in drawn:
        # the end of a long chain cracks like a whip: in longer steps its equations have no solution
        usual = dict(h=0.01 if len(mb.bodies) < 20 else 0.002)
        run = mb.simulate(**(usual | options | dict(t_end=1000.0, every=1000)))
        assert run.t[-1] == pytest.approx(1000.0) and run.summary.max_constraint < 1e-12
        energy = run["total_energy"] - run.supplied_energy + run.dissipated_energy
        # a ball that rolls down for so long has much of both, and their sum is zero
        parts = (run["kinetic_energy"], run["potential_energy"], run.supplied_energy, run.dissipated_energy)
        assert np.ptp(energy) < 1e-9 * max(1.0, *(np.abs(part).max() for part in parts))


def drawing(path):
    """Return True if a page builds mechanisms."""
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    return any(re.search(r"lv\.Multibody[(.]", block) for block in blocks)


def test_no_document_is_left_out():
    """Every page with mechanisms is among those that run for a thousand seconds, or ends earlier for a reason."""
    pages = [page for page in DOCS.rglob("*.md") if "gallery" not in page.parts and drawing(page)]
    found = {page.relative_to(DOCS).with_suffix("").as_posix() for page in pages}
    assert found == {*LONG, *CONTACT, *SHORT, "index"}


@pytest.mark.slow
def test_the_examples_of_contact_have_no_unstable_mode(monkeypatch):
    """A thousand seconds of each mechanism, as it is run there. Exact schemes keep the balance to round-off; where
    steps follow the stiffness, or forces are evaluated once per step, the error is that of the scheme."""
    drawn = [mechanism for name in CONTACT for mechanism in drawn_in(name, monkeypatch)]
    kinds = set()
    for mb, options in drawn:
        scheme = options.get("scheme", mb.default_scheme)
        run = mb.simulate(**(dict(h=1e-3) | options | dict(t_end=1000.0, every=1000)))
        assert run.t[-1] == pytest.approx(1000.0)
        energy = run["total_energy"] - run.supplied_energy + run.dissipated_energy
        if mb._contact_groups:
            # the work of contacts of a group counts as supplied; they have stored or dissipated it
            stored = sum(group.stored_energy(run) for group in mb._contact_groups.values())
            energy = run["total_energy"] + stored + run.dissipated_energy
        size = max(1.0, np.abs(run["total_energy"]).max(), np.abs(run.dissipated_energy).max())
        assert np.ptp(energy) < (1e-9 if scheme == "lie-em" else 2e-2) * size, (scheme, np.ptp(energy), size)
        kinds.add("rigid contact" if mb._rigid_contacts else "contact group" if mb._contact_groups else scheme)
    assert kinds == {"rigid contact", "contact group", "lie-em", "semi-explicit:0.5,0.5"}


@pytest.mark.slow
def test_the_steered_arm_of_the_tutorial_comes_to_rest():
    """It stays where it is steered to, and its velocities stay on the constraints; where its target jumps they do not,
    and alternate for ever, but nothing grows and no step fails, at rest neither."""
    text = (DOCS / "howto/short-mechanisms.md").read_text(encoding="utf-8")
    (block,) = (one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "arm6.pd" in one)
    for smooth in (True, False):
        names = {"lv": lv}
        said = block if smooth else re.sub(r"reference=lambda t: .*\)", "reference=0.5)", block)
        assert said.count("arm6.pd") == 1 and ("lambda" in said) == smooth
        exec(compile(said, "docs/howto/short-mechanisms.md", "exec"), names)
        run = names["arm6"].simulate(t_end=1000.0, h=0.01, every=1000)
        assert abs(run["joint0.angle"][-1] - 0.5) < 1e-9
        assert (run["kinetic_energy"][1:].max() < 1e-9) == smooth
        assert run["kinetic_energy"][1:].max() < 2.0


@pytest.mark.slow
def test_the_doctest_of_bodies_has_no_unstable_mode():
    """The example of `livens.multibody` conserves its energy for a thousand seconds."""
    source = importlib.import_module("livens.multibody").__doc__
    names = {}
    lines_of_code = [line[4:] for line in source.splitlines() if line.startswith((">>> ", "... "))]
    exec(compile("\n".join(lines_of_code), "livens.bodies", "exec"), names)
    systems = [value for value in names.values() if isinstance(value, lv.System)]
    runs = [value for value in names.values() if isinstance(value, lv.Result)]
    assert systems and runs
    for run in runs:
        long = lv.simulate(
            run.system, run.q[0], run.v[0], scheme=run.info.scheme, h=run.info.h, t_end=1000.0, every=1000
        )
        assert long.summary.max_energy_drift < 1e-9 and long.summary.max_constraint < 1e-11
