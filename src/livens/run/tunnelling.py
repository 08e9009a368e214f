"""Tunnelling of pairs in contact: bodies whose swept bounding spheres pass through each other within a step."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.stepper import StepChunk
from livens.errors import LivensWarning

if TYPE_CHECKING:
    from livens.multibody.contacts.checks import SweptPair


class TunnellingMonitor:
    """Warn once for each pair that passes within a step."""

    def __init__(self, pairs: Sequence[SweptPair], coordinates: slice) -> None:
        self._pairs, self._coordinates = list(pairs), coordinates
        moving = {i for pair in pairs for centre in pair.centres for i in centre.indices[: len(centre.offset)]}
        self._centres = np.array(sorted(moving), dtype=np.int64)
        # displacement of one coordinate in a step below which no pair moves by the sum of its radii
        self._smallest = min(pair.radius_sum / (2 * len(pair.centres[0].offset) ** 0.5) for pair in pairs)

    def observe(self, steps: StepChunk) -> None:
        """Check the steps of a chunk."""
        q = steps.states[:, self._coordinates]
        if not np.abs(np.diff(q[:, self._centres], axis=0)).max(initial=0.0) > self._smallest:
            return
        for pair in self._pairs.copy():
            passing = pair.passes(q)
            if passing.any():
                self._pairs.remove(pair)
                t = steps.t_nodes[int(np.argmax(passing))]
                warnings.warn(
                    f"{pair.name}: '{pair.bodies[0]}' and '{pair.bodies[1]}' may have passed through each other "
                    f"without contact at t = {t:.4g}: within a step they move by more than the sum of their bounding "
                    f"radii ({pair.radius_sum:.3g} m): use smaller steps",
                    LivensWarning,
                    stacklevel=2,
                )
