"""Expressions of scenarios: valid ones have the value of Python, all others raise an error with a message."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from livens import math as m
from livens.scenario import evaluate, grammar
from torture.findings import Findings
from torture.strings import FUNCTIONS, damaged, expression, nonsense

#: What names stand for.
VALUES = {"x": 0.75, "y": -1.25}
#: Waves of larger numbers than this depend on how the last digit of these was rounded: powers may be products.
_LARGEST = 1e3


def _wave(function: Callable[[float], float]) -> Callable[[float], float]:
    def limited(x: float) -> float:
        if abs(x) > _LARGEST:
            raise ArithmeticError
        return function(x)

    return limited


_WAVES = {"sin": _wave(math.sin), "cos": _wave(math.cos)}
_PYTHON = {**FUNCTIONS, **_WAVES, **VALUES, "pi": math.pi, "e": math.e, "__builtins__": {}}


def expected(text: str) -> float | None:
    """Return the value of Python if it is finite and not sensitive to round-off; else None."""
    try:
        value = eval(text, _PYTHON)
    except ArithmeticError:
        return None
    return float(value) if not isinstance(value, complex) and math.isfinite(value) else None


def run(seed: int, first: int, count: int) -> Findings:
    findings = Findings()
    for number in range(first, first + count):
        chance = random.Random(f"expression {seed} {number}")
        kind = chance.choice(("right", "damaged", "damaged", "nonsense"))
        text = nonsense(chance) if kind == "nonsense" else expression(chance, tuple(VALUES))
        if kind == "damaged":
            text = damaged(chance, text)
        findings.counts["expressions"] += 1
        with findings.case(number, text):
            tree = grammar.parse(text)
            if {name.name for name in grammar.names(tree)} - {*VALUES, *evaluate.CONSTANTS}:
                findings.counts["with unknown names"] += 1
                continue
            value = evaluate.evaluate(tree, VALUES, text)
            findings.counts["evaluated"] += 1
            if kind == "right":
                wanted = expected(text)
                if wanted is not None and not math.isclose(value, wanted, rel_tol=1e-12, abs_tol=1e-12):
                    findings.fault(number, f"{text!r} is {value!r}, Python says {wanted!r}")
            if number % 16 == 0:
                evaluate.evaluate(tree, {name: m.Scalar(value) for name, value in VALUES.items()}, text)
    return findings
