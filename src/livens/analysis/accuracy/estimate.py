"""Error estimate of a run: verdict, error by variable, and summary line."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens.scene import html

#: Verdicts, best first; they appear in reports and in JSON.
ROUND_OFF, RESOLVED, ORDER_NOT_OBSERVED, RESOLVED_UNTIL, UNKNOWN, NOT_RESOLVED = (
    "round-off",
    "resolved",
    "order not seen",
    "accurate until t",
    "unknown",
    "not resolved",
)
VERDICT_ORDER = (ROUND_OFF, RESOLVED, ORDER_NOT_OBSERVED, RESOLVED_UNTIL, UNKNOWN, NOT_RESOLVED)
#: Verdicts with an error below a tenth of the motion over the whole run.
ACCEPTABLE = (ROUND_OFF, RESOLVED, ORDER_NOT_OBSERVED)
#: Relative error above which differences of runs no longer measure an error: a tenth of the motion.
LARGE_ERROR = 0.1
#: Steps per oscillation below which the summary mentions them.
_MIN_STEPS_PER_OSCILLATION = 8.0
_REFINED_STEPS = {0: "2h and 4h", 1: "h/2 and 2h", 2: "h/2 and h/4"}


@dataclass
class Estimate:
    """Estimated discretisation error of a run by block of its state: q and v (q and p; x), and algebraic variables y.

    Errors are relative to the size of the motion, which is half its range. Errors of the model or of its data are not
    included.

    Parameters
    ----------
    verdict : str
        Worst verdict of all blocks.
    verdicts : dict of str to str
        Verdict by block.
    error : dict of str to float
        Largest relative error over the run, by block.
    at_end : dict of str to float
        Relative error of the last row, by block.
    t : ndarray
        Times of `over_time`.
    over_time : dict of str to ndarray
        Relative error at the times `t`, by block.
    size : dict
        Reference size of the errors, by block.
    ratio : dict of str to float
        Factor by which halving the step reduces differences; 2^order.
    order : int
        Declared order of the scheme.
    level : int, default 1
        Level of the run among the compared runs: 0 finest (2h, 4h), 1 middle (h/2, 2h), 2 coarsest (h/2, h/4).
    until : dict of str to float
        Time at which the error reaches a tenth of the motion.
    growth : str
        Growth law of the error: bounded, linear, quadratic or exponential.
    rate : float or None
        Rate at which neighbouring motions diverge, if exponentially.
    steps_per_oscillation : float or None
        Steps per oscillation of the fastest resolved part of the motion.
    window : float or None
        End time of the refined runs of a long run; errors beyond it are extrapolated.
    notes : list of str
        Additional remarks.
    steps : int
        Total number of steps of the refined runs.
    seconds : float
        Time of the refined runs, in seconds.
    """

    verdict: str
    verdicts: dict[str, str] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=dict)
    at_end: dict[str, float] = field(default_factory=dict)
    t: np.ndarray = field(default_factory=lambda: np.zeros(0))
    over_time: dict[str, np.ndarray] = field(default_factory=dict)
    size: dict[str, object] = field(default_factory=dict)
    ratio: dict[str, float] = field(default_factory=dict)
    order: int = 0
    level: int = 1
    until: dict[str, float] = field(default_factory=dict)
    growth: str = ""
    rate: float | None = None
    steps_per_oscillation: float | None = None
    window: float | None = None
    notes: list[str] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0

    @property
    def resolved(self) -> bool | None:
        """True if the error stays below a tenth of the motion over the whole run; None if unknown."""
        return None if self.verdict == UNKNOWN else self.verdict in ACCEPTABLE

    @property
    def worst(self) -> float:
        """Largest relative error of all blocks."""
        return max(self.error.values(), default=math.nan)

    def summary_line(self) -> str:
        """Return the summary line of the report.

        Returns
        -------
        str
            Verdict and errors in one line.
        """
        if self.verdict == UNKNOWN and not self.error:
            return "; ".join(["accuracy: not known", *self.notes])
        source = f"from runs with {_REFINED_STEPS[self.level]}"
        if self.window is not None:
            source += f" until t = {self.window:.3g}, extrapolated"
        ratios = [ratio for ratio in self.ratio.values() if math.isfinite(ratio) and ratio > 0]
        if ratios and self.verdict not in (ROUND_OFF, UNKNOWN):
            source += f"; order {max(math.log2(min(ratios)), 0.0):.1f} observed, {self.order} declared"
        line = "accuracy: " + ", ".join(self._block_summary(name) for name in self.error) + f" ({source})"
        parts = [line]
        if self.rate is not None and self.verdict in (RESOLVED_UNTIL, NOT_RESOLVED):
            parts.append(f"neighbouring motions diverge by a factor e in {1 / self.rate:.2g}")
        if self.steps_per_oscillation is not None and self.steps_per_oscillation < _MIN_STEPS_PER_OSCILLATION:
            parts.append(f"{self.steps_per_oscillation:.1f} steps per oscillation")
        return "; ".join([*parts, *self.notes])

    def _block_summary(self, name: str) -> str:
        error, verdict = self.error[name], self.verdicts[name]
        if self.window is not None and verdict in ACCEPTABLE:
            return f"{name} to at most about {error:.0e} of its motion"
        if verdict == RESOLVED_UNTIL:
            when = f"until t = {self.until[name]:.3g}" if name in self.until else "not to the end"
            return f"{name} to a tenth of its motion {when}, wrong by {min(error, 1.0):.0%} at worst"
        if verdict == NOT_RESOLVED:
            if error < LARGE_ERROR:
                return f"{name} NOT CONFIRMED (other steps change it by {error:.0e})"
            return f"{name} NOT RESOLVED" + (f" (wrong by {error:.0%})" if error < 1 else "")
        return {
            ROUND_OFF: f"{name} to round-off ({error:.0e})",
            RESOLVED: f"{name} to {error:.1e} of its motion",
            ORDER_NOT_OBSERVED: f"{name} to roughly {error:.0e} of its motion",
            UNKNOWN: f"{name} not known",
        }[verdict]

    def as_object(self) -> dict[str, Any]:
        """Return the estimate as a dict for JSON.

        Returns
        -------
        dict of str to object
            Estimate; values that are not finite become None.
        """
        return {
            "resolved": self.resolved,
            "estimated_error": {name: _finite(value) for name, value in self.error.items()} or None,
            "accuracy": {
                "verdict": self.verdict,
                "verdicts": self.verdicts,
                "error_at_end": {name: _finite(value) for name, value in self.at_end.items()},
                "until": self.until,
                "order_seen": {n: math.log2(r) if 0 < r < math.inf else None for n, r in self.ratio.items()},
                "order_declared": self.order,
                "words": self.summary_line(),
            },
        }

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.summary_line())}</p>"

    def __str__(self) -> str:
        return self.summary_line()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
