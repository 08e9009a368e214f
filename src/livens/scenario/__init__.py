"""Scenario files: runs described in YAML, of a built-in problem, a system of expressions, or a mechanism.

>>> from livens import scenario
>>> falling = scenario.parse('''
... system:
...   coordinates: z
...   parameters: {m: 2.0, g: 9.81}
...   kinetic: m/2*v_z**2
...   potential: m*g*z
... initial: {z: 10}
... h: 1e-2
... t_end: 1
... ''')
>>> round(float(falling.run().q[-1, 0]), 3)
5.095

The format and the expression language are described in docs/howto/yaml-models.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from livens.scenario.restore import SCENARIO_NAME
    from livens.scenario.scenario import Scenario, described, load, parse

__all__ = ["SCENARIO_NAME", "Scenario", "described", "load", "parse"]


def __getattr__(name: str) -> Any:
    """Import the parser on first use: restoring the model of a run does not need it."""
    if name not in __all__:
        raise AttributeError(f"module 'livens.scenario' has no attribute '{name}'")
    from livens.scenario import scenario

    globals().update({each: getattr(scenario, each) for each in __all__})
    return globals()[name]
