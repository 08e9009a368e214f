"""Compressed key-frame series of an animation.

A series is quantised to 65536 values between its minimum and maximum. Smooth motions have second differences between
frames that fit into one byte. A *delta-coded* series consists of its first value and first difference, two bytes each,
and one byte for every further frame. The byte -128 is an escape for a larger difference, which follows in two bytes.
Where delta coding does not pay off, as for noise, a series is stored *raw*, with two bytes per frame. Differences are
taken modulo 65536, so that the coding is lossless.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from livens.scene.scene import ScenePose
from livens.types import ArrayLike

#: Tolerance, in quantisation steps, below which two series are duplicates.
_DUPLICATE_TOLERANCE = 2.0**-6
#: Escape code of a difference that does not fit into one byte.
_ESCAPE = -128


class KeyframeSeries:
    """All key-frame series of a run; duplicates, such as coincident points of a joint, are stored once."""

    def __init__(self, frames: int) -> None:
        #: A number for a constant; otherwise minimum, quantisation step, index of a raw series or byte offset of a
        #: delta-coded one, and 1 if delta-coded, 0 if raw.
        self.values: list[Any] = []
        self._frames = frames
        self._delta_coded: list[bytes] = []
        self._raw: list[bytes] = []
        self._offsets = [0]  # byte offsets of delta-coded series
        self._constant: dict[float, int] = {}
        self._moving: dict[Any, list[tuple[np.ndarray, int]]] = {}
        self._entries: dict[int, int] = {}

    @property
    def n_raw(self) -> int:
        """Number of raw series; they come first."""
        return len(self._raw)

    def add(self, numbers: Any) -> int:
        """Add a series and return its index; duplicates share an index."""
        full = np.asarray(numbers, dtype=float)
        low, high = float(full.min()), float(full.max())
        if not (math.isfinite(low) and math.isfinite(high)):  # JSON has no NaN: replace by zero
            full = np.where(np.isfinite(full), full, 0.0)
            low, high = float(full.min()), float(full.max())
        step = (high - low) / 65535
        if step == 0.0 or not math.isfinite(step):
            if low not in self._constant:
                self._constant[low] = self._append(low)
            return self._constant[low]
        candidates = self._moving.setdefault(_key(full, low, high), [])
        for other, index in candidates:
            if np.abs(full - other).max() <= _DUPLICATE_TOLERANCE * step:
                return index
        candidates.append((full, self._append(self._packed(full, low, step))))
        return candidates[-1][1]

    def entry(self, pose: ScenePose, entry: int) -> int:
        """Return the index of the series of an entry of the scene's tape, which several shapes may share."""
        if entry not in self._entries:
            self._entries[entry] = self.add(pose.values(entry))
        return self._entries[entry]

    def packed(self) -> str:
        """Return all varying series in base64: the raw ones, then the delta-coded ones."""
        return base64.b64encode(b"".join([*self._raw, *self._delta_coded])).decode("ascii")

    def _append(self, value: ArrayLike) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _packed(self, full: np.ndarray, low: float, step: float) -> list[float]:
        quantised = np.rint((full - low) / step).astype("<u2")
        second_differences = np.diff(quantised.view("<i2"), n=2)  # modulo 65536
        deltas = second_differences.astype("i1")
        escaped = np.flatnonzero((deltas != second_differences) | (deltas == _ESCAPE))
        if 3 * len(escaped) >= len(quantised) - 2:
            self._raw.append(quantised.tobytes())
            return [low, step, len(self._raw) - 1, 0]
        if escaped.size:
            deltas[escaped] = _ESCAPE
            pairs = second_differences[escaped].view("i1")
            deltas = np.insert(deltas, np.repeat(escaped + 1, 2), pairs)
        head = quantised[:2].copy()
        head[1:] -= head[:1]
        self._delta_coded.append(head.tobytes() + deltas.tobytes())
        self._offsets.append(self._offsets[-1] + len(self._delta_coded[-1]))
        return [low, step, self._offsets[-2], 1]


def _key(full: np.ndarray, low: float, high: float) -> tuple[int, ...]:
    """Return a hash key that is equal for most duplicates and different for most other series."""
    unit = 2.0 ** (math.frexp(high - low)[1] - 16)
    samples = (low, high, full[0], full[len(full) // 3], full[-1])
    return tuple(round(float(value) / unit) for value in samples)


def to_base64(numbers: np.ndarray) -> str:
    """Return an array in base64."""
    return base64.b64encode(np.ascontiguousarray(numbers).data).decode("ascii")
