"""Scenarios: damaged ones run or raise an error with a message; valid ones with any numbers take their first step."""

from __future__ import annotations

import random

import livens as lv
import scenarios
from livens.scenario.templates import PROBLEM, SYSTEM
from torture.findings import Findings
from torture.strings import damaged, expression, nonsense

BASES = (scenarios.PENDULUM, scenarios.EVERYTHING, SYSTEM.format(file="a.yaml"), PROBLEM.format(file="a.yaml"))
SCHEMES = ("livens-em", "livens-midpoint", "radau-iia-2", "gauss-1", "gauss-2", "stormer-verlet", "implicit-midpoint")
#: Valid scenarios have this many different models, each with many different numbers.
MODELS = 24
#: This many in a row have the same model, but for one in ten: steps are derived anew after some thirty others.
IN_A_ROW = 200
#: Of damaged scenarios that are still valid, one in so many is compiled and run: compiling takes a tenth of a second.
_RUN_ONE_IN = 200
#: Compiling counts.
_LIMIT = 20.0


def broken(chance: random.Random) -> str:
    """Return a text that is most likely not a scenario."""
    text = chance.choice(BASES)
    lines = text.splitlines(keepends=True)
    match chance.randrange(5):
        case 0:
            return damaged(chance, text)
        case 1:
            lines[chance.randrange(len(lines))] = chance.choice(lines)
        case 2:
            del lines[chance.randrange(len(lines))]
        case 3:
            at = chance.randrange(len(lines))
            name, colon, _ = lines[at].partition(":")
            lines[at] = f"{name}{colon} {nonsense(chance)}\n"
        case 4:
            at = chance.randrange(len(lines))
            name, colon, _ = lines[at].partition(":")
            lines[at] = f"{name}{colon} {expression(chance, ('x', 'y', 'm', 'v_x', 't'))}\n"
    return "".join(lines)


def model(number: int) -> tuple[str, list[str], list[str]]:
    """Return the text of a model without its numbers, the names of its coordinates, and its schemes."""
    chance = random.Random(f"model {number}")
    names = ["x", "y", "z"][: chance.randint(1, 3)]
    squares = " + ".join(f"v_{name}**2" for name in names)
    well = " + ".join(f"k/2*({name} - a)**2" for name in names)
    field = chance.choice(("b*sin({0})", "b*cos({0} - a)", "b*tanh({0})", "b*atan({0})", "b*exp(-({0})**2)"))
    lines = [
        "system:",
        f"  coordinates: {' '.join(names)}",
        "  parameters: {{m: {m}, k: {k}, a: {a}, b: {b}, d: {d}}}",
        f"  kinetic: m/2*({squares})",
        f"  potential: {well} + {field.format(chance.choice(names))}",
    ]
    constrained = len(names) > 1 and chance.random() < 0.4
    if constrained:
        lines.append("  constraints: [x + y - 2*a]")
    elif chance.random() < 0.5:
        lines.append(f"  dissipation: d/2*({squares})")
    if chance.random() < 0.3:
        lines.append(f"  forces: {{{{{names[-1]}: b*sin(t)}}}}")
    free = [*SCHEMES[:2], SCHEMES[2]] if constrained else [*SCHEMES[:5]]
    return "\n".join(lines) + "\n", names, free


def valid(chance: random.Random, number: int) -> str:
    """Return a valid scenario with numbers of all sizes."""
    which = chance.randrange(MODELS) if chance.random() < 0.1 else number // IN_A_ROW % MODELS
    text, names, schemes = model(which)
    size = lambda: f"{chance.uniform(0.1, 9.9):.{chance.randint(1, 12)}f}e{chance.randint(-3, 3)}"  # noqa: E731
    numbers = dict(m=size(), k=size(), a=chance.choice(("-", "")) + size(), b=size(), d=size())
    start = [f"{name}: {'a' if name in 'xy' else chance.uniform(-2, 2)}" for name in names]
    start += [f"v_{name}: {'b/9' if name == 'z' else 0}" for name in names]
    h, t0 = chance.choice((1e-1, 1e-2, 1e-3, 1e-5)), chance.choice((0, 0, 1, -3.5))
    return (
        text.format(**numbers)
        + f"initial: {{{', '.join(start)}}}\nscheme: {chance.choice(schemes)}\n"
        + f"t0: {t0}\nh: {h!r}\nt_end: {t0 + 100 * h!r}\n"
        + chance.choice(("", "every: 3\n", "project: true\n"))
    )


def run(seed: int, first: int, count: int) -> Findings:
    """Test damaged scenarios."""
    findings = Findings()
    for number in range(first, first + count):
        chance = random.Random(f"scenario {seed} {number}")
        text = broken(chance)
        findings.counts["damaged scenarios"] += 1
        compiled = chance.randrange(_RUN_ONE_IN) == 0
        with findings.case(number, text, _LIMIT if compiled else 2.0):
            problem = lv.scenario.parse(text, "a.yaml").problem()
            findings.counts["of these still valid"] += 1
            if compiled:
                lv.simulate(problem, t_end=problem.t0 + problem.h)
                findings.counts["of these run"] += 1
    return findings


def run_valid(seed: int, first: int, count: int) -> Findings:
    """Test valid scenarios up to their first step."""
    findings, known = Findings(), set()
    for number in range(first, first + count):
        chance = random.Random(f"valid {seed} {number}")
        text = valid(chance, number)
        findings.counts["valid scenarios"] += 1
        scenario = lv.scenario.parse(text, "a.yaml")
        problem = scenario.problem()
        kind = (problem.model.fingerprint, problem.scheme)
        with findings.case(number, text, 2.0 if kind in known else _LIMIT):
            try:
                run = lv.simulate(problem, t_end=problem.t0 + problem.h, **scenario.settings_except(("t_end", "out")))
                findings.counts["that took their first step"] += run.statistics.steps == 1
            except lv.IntegrationError as error:
                findings.counts["whose first step failed with a reason"] += 1
                if "step" not in str(error):
                    findings.fault(number, f"{text!r}: {error}")
        known.add(kind)
    findings.counts.pop("refused", None)
    return findings
