"""Runs of mechanisms that are drawn with `livens.Multibody`."""

from __future__ import annotations

from typing import Any

from livens.multibody.builder import Multibody
from livens.results.result import Result
from livens.run.simulate import simulate


def _simulate(
    mechanism: Multibody,
    t_end: float = 1.0,
    h: float = 1e-3,
    *,
    scheme: str | None = None,
    velocity_level: bool = False,
    **options: Any,
) -> Result:
    """A run from the start that the drawing and its targets say; options are those of `livens.simulate`.

    With `velocity_level`, constraints hold on velocity level too.
    """
    usual = "lie-ggl" if velocity_level else mechanism.usual_scheme
    q, v = mechanism.started
    if options.get("scaling") is None:  # else h is a step of fictive time, and shrinks where it has to
        mechanism.check_steps(h)
    return simulate(mechanism.system, q, v, scheme=scheme or usual, h=h, t_end=t_end, **options)


Multibody.attach("simulate", _simulate)
