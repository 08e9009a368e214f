"""Mesh refinement: local errors of the steps from half steps, and meshes that equidistribute them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens.errors import InputError, IntegrationError
from livens.transcription.compiled_replay import CompiledMap
from livens.transcription.guess import initial_guess
from livens.transcription.ipopt_solver import solve
from livens.transcription.transcription import Transcription
from livens.validation import check_integer, check_positive

if TYPE_CHECKING:
    from livens.transcription.motion import OptimalMotion

#: Largest number of parts into which one round divides a step.
_MAX_PARTS = 4


def local_errors(motion: OptimalMotion, compiled_map: CompiledMap) -> np.ndarray:
    """Return the local error of every step relative to half the range of the motion, by Richardson extrapolation."""
    states, layout = motion.states, motion.transcription.stage.layout
    parts = ("q", "p") if "q" in layout else ("x",)  # velocities at nodes may be recorded only
    entries = np.concatenate([np.arange(layout[name].start, layout[name].stop) for name in parts])
    spans = np.ptp(states[:, entries], axis=0)
    scale = np.maximum(np.maximum(spans, 1e-3 * spans.max(initial=0.0)) / 2, 1e-300)
    factor = 1 - 2.0**-motion.transcription.problem.scheme.order
    errors = np.full(len(motion.h), np.inf)
    for i, h in enumerate(motion.h):
        k = motion.parameter_rows[i]
        try:
            half = compiled_map(states[i], motion.t[i], h / 2, k)
            two_halves = compiled_map(half, motion.t[i] + h / 2, h / 2, k)
        except IntegrationError:
            continue
        errors[i] = np.max(np.abs(two_halves - states[i + 1])[entries] / scale) / factor
    return errors


def refined(motion: OptimalMotion, tolerance: float, max_steps: int, max_rounds: int) -> OptimalMotion:
    """Return the motion on a mesh with local errors below the tolerance; the last motion if that is not reached."""
    check_positive("tolerance", tolerance)
    check_integer("max_steps", max_steps, len(motion.h))
    check_integer("max_rounds", max_rounds, 1)
    if not motion.converged:
        raise InputError("a motion that did not converge cannot be refined: solve it first, see motion.message")
    stage, order = motion.transcription.stage, motion.transcription.problem.scheme.order
    for _ in range(max_rounds):
        errors = motion.step_errors
        if errors.max() <= tolerance:
            break
        ratio = np.where(np.isfinite(errors), errors / tolerance, np.inf)
        parts = np.clip(np.ceil(ratio ** (1 / (order + 1))), 1, _MAX_PARTS).astype(int)
        if parts.sum() > max_steps:
            break
        fractions = np.repeat(motion.transcription.fractions / parts, parts)
        transcription = Transcription(stage, fractions / fractions.sum())
        solution = solve(transcription.program, initial_guess(transcription, motion), motion.ipopt, motion.progress)
        motion = type(motion)(transcription, solution, motion.ipopt, motion.progress)
        if not motion.converged:
            break
    return motion
