"""Random initial guesses of a multi-start."""

from __future__ import annotations

import numpy as np

from livens.transcription.nlp_blocks import INFINITE_BOUND
from livens.transcription.transcription import Transcription

#: Number of sine functions of a random path.
_N_SINES = 3
#: Amplitude of random velocities relative to the mean velocity of a unit displacement.
_AMPLITUDE = 1.0


def random_guess(transcription: Transcription, w: np.ndarray, seed: int) -> np.ndarray:
    """Return a random guess: the guess w plus random smooth paths of coordinates and inputs.

    Sine functions vanish at both ends, so that start and end of the path remain. Only models without constraints have
    perturbed paths; others have perturbed inputs.
    """
    generator = np.random.default_rng(seed)
    stage, tau = transcription.stage, transcription.tau
    new = w.copy()
    inputs = transcription.inputs_of(w)
    lower, upper = transcription.lower[transcription.value_index], transcription.upper[transcription.value_index]
    bounded = (lower > -INFINITE_BOUND) & (upper < INFINITE_BOUND)
    spans = np.where(bounded, upper - lower, 2.0 * np.maximum(1.0, np.abs(inputs).max(initial=0.0)))
    relative = transcription.tau[:-1, None] + transcription.fractions[:, None] * transcription.problem.shape.nodes
    waves = _random_waves(generator, relative.ravel(), inputs.shape[-1]).reshape(inputs.shape)
    new[transcription.value_index] = inputs + spans / 4 * waves
    if not stage.kept_constraints:
        parts = ("q",) if "q" in stage.layout else ("x",)
        for name in parts:
            columns = [stage.active.index(i) for i in range(stage.layout[name].start, stage.layout[name].stop)]
            rows = new[transcription.node_index[:, columns]]
            new[transcription.node_index[:, columns]] = rows + _AMPLITUDE * _random_waves(generator, tau, len(columns))
    return np.clip(new, transcription.lower, transcription.upper)


def _random_waves(generator: np.random.Generator, tau: np.ndarray, count: int) -> np.ndarray:
    """Return random sums of sine functions over [0, 1], (n_times, count)."""
    numbers = np.arange(1, _N_SINES + 1)
    coefficients = generator.standard_normal((_N_SINES, count)) / numbers[:, None]
    return np.asarray(np.sin(np.pi * tau[:, None] * numbers[None, :]) @ coefficients)
