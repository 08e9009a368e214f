"""Command lines: any words in any order end with an exit code and a message, never with a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import random
import tempfile
from pathlib import Path

import click
import typer

import livens as lv
import scenarios
from livens.cli import app
from torture.findings import Findings
from torture.strings import damaged, nonsense

#: Commands that are quick even if nothing is wrong with what they are given.
QUICK = ("run", "run", "run", "run", "list", "init", "report")
#: Commands that would take long: they always get a word that cannot be right.
LONG = ("compare", "converge", "work-precision", "sweep", "plot", "view", "reproduce", "bench", "walk")
WRONG = ("--no-such-option", "no-such-problem", "--h=nan", "--scheme=no-such", "--set=l", "absent.h5", "--rounds=0")
PROBLEMS = (
    "simple-pendulum",
    "simple-pendulum",
    "kepler",
    "text.h5",
    "run.h5",
    "a.yaml",
    "b.yaml",
    "absent.yaml",
    "",
    ".",
)
OPTIONS = {
    "--h": ("0.01", "0.005", "0", "-1", "nan", "inf", "1e-400", "fast", "", "1e308"),
    "--t-end": ("0.02", "0.05", "0", "-1", "nan", "", "late"),
    "--scheme": ("livens-em", "livens-midpoint", "gauss-0", "gauss--1", "gauss-1e9", "livens-em:", "", "é", "a:b:c"),
    "--set": ("l=2", "l=0", "g=-9", "l=nan", "l", "=", "l=1=2", "l=x", "mass=1", "l=1e999", "l=" + "9" * 400),
    "--every": ("1", "3", "0", "-1", "1.5", "9" * 30, "x"),
    "--store": ("q", "q,v", "", ",", "q,,v", "nothing", "t,t"),
    "--out": ("new.h5", "run.h5", "no/where.h5", ".", "/dev/null", "text.h5", "a\x00b", "n" * 300, ""),
    "--tier": ("fused", "reference", "fast", ""),
    "--threads": ("1", "2", "0", "-3", "many", ""),
    "--tolerance": ("1e-6", "0", "-1", "nan", "x"),
    "--smallest": ("1e-4", "0", "-1", "x"),
    "--largest": ("0.1", "0", "1e-5", "x"),
}
FLAGS = (
    "--json",
    "--quiet",
    "--compress",
    "--resume",
    "--force",
    "--no-accuracy",
    "--accuracy",
    "--help",
    "--version",
    "--",
)
LISTS = ("schemes", "problems", "gradients", "schemas", "observables")


def words(chance: random.Random) -> list[str]:
    """Return the arguments of a command line."""
    command = chance.choice((*QUICK, *LONG))
    found = [command]
    if command == "list":
        found += [chance.choice(LISTS), chance.choice(("", "gauss-2", "kepler", "gaus-2", nonsense(chance)))][
            : chance.randint(0, 2)
        ]
    elif chance.random() < 0.95:
        found.append(chance.choice(PROBLEMS))
    if command == "run" and "--t-end" not in found:
        found += ["--t-end", "0.02"]  # what is valid must be short
    for _ in range(chance.randint(0, 4)):
        if chance.random() < 0.3:
            found.append(chance.choice(FLAGS))
            continue
        name = chance.choice(list(OPTIONS))
        found += (
            [name, chance.choice(OPTIONS[name])]
            if chance.random() < 0.7
            else [f"{name}={chance.choice(OPTIONS[name])}"]
        )
    if chance.random() < 0.15:
        at = chance.randrange(len(found))
        found[at] = damaged(chance, found[at])
    if found[0] not in QUICK or "report" in found[:1]:
        found.append(chance.choice(WRONG))
    return found


def limit(arguments: list[str]) -> float:
    """Return the time limit in seconds: longer for the reference tier, and for all schemes of all problems."""
    return 20.0 if "reference" in arguments or (arguments[0] == "list" and "--json" in arguments) else 2.0


def prepare_folder() -> None:
    Path("text.h5").write_text("hello")
    Path("a.yaml").write_text(scenarios.PENDULUM)
    Path("b.yaml").write_text(scenarios.PENDULUM.replace("potential", "potentiel"))
    if not Path("run.h5").exists():
        lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.02, out="run.h5")


def called(command: click.Command, arguments: list[str]) -> int:
    """Return the exit code of a command, as `livens.cli.main`."""
    try:
        command.main(list(arguments), prog_name="livens", standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except lv.InputError as error:
        assert str(error)
        return 2
    except lv.IntegrationError as error:
        assert str(error)
        return 3
    return 0


def run(seed: int, first: int, count: int) -> Findings:
    findings, command = Findings(), typer.main.get_command(app)
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            prepare_folder()
            # compiled before anything is timed
            for problem in ("simple-pendulum", "kepler", "a.yaml"):
                for scheme in ("livens-em", "livens-midpoint"):
                    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(lv.InputError):
                        called(command, ["run", problem, "--scheme", scheme, "--t-end", "0.02", "--force", "--quiet"])
            for number in range(first, first + count):
                arguments = words(random.Random(f"command {seed} {number}"))
                if number % 64 == 0:
                    prepare_folder()
                Path("absent.h5").unlink(missing_ok=True)  # `init` may have made it
                findings.counts["command lines"] += 1
                said, complained = io.StringIO(), io.StringIO()
                with (
                    findings.case(number, arguments, limit(arguments)),
                    contextlib.redirect_stdout(said),
                    contextlib.redirect_stderr(complained),
                ):
                    code = called(command, arguments)
                    findings.counts[f"with exit code {code}"] += 1
                    if code not in (0, 1, 2, 3):
                        findings.fault(number, f"{arguments}: exit code {code}")
                if "Traceback" in complained.getvalue():
                    findings.fault(number, f"{arguments}: {complained.getvalue()[:500]}")
        finally:
            os.chdir(here)
    return findings
