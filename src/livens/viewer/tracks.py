"""Numbers over the frames of a film, in as few bytes as the eye needs.

A track is rounded to one of 65536 values between its least and its greatest. What moves smoothly has second
differences, from frame to frame, that fit into one byte. So a *near* track is its first value and its first difference,
two bytes each, and then one byte for every other frame; the byte -128 says that this difference is too large for one,
and follows in two. Where that is no gain, as for noise, a track is a *far* one, of two bytes for every frame.
Differences are taken modulo 65536, so that nothing is lost on the way.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from livens.models.scene import Pose

#: Tracks that differ by less than this part of one of the 65536 steps are one track.
_ALIKE = 2.0**-6
#: The difference that stands for a longer one.
_LONG = -128


class Tracks:
    """All tracks of a run; equal ones, such as the ends of two bodies that a joint holds together, are there once."""

    def __init__(self, frames: int) -> None:
        #: A number where nothing moves; else the least value, the size of a step, the number of a far track or the byte
        #: among those of near tracks where it begins, and whether it is a near one (1) or a far one (0).
        self.values: list[Any] = []
        self._frames = frames
        self._near: list[bytes] = []
        self._far: list[bytes] = []
        self._ends = [0]  # of near tracks
        self._constant: dict[float, int] = {}
        self._moving: dict[Any, list[tuple[np.ndarray, int]]] = {}
        self._entries: dict[int, int] = {}

    @property
    def far(self) -> int:
        """How many far tracks there are: they come first."""
        return len(self._far)

    def add(self, numbers: Any) -> int:
        """The number of a track; equal tracks are one."""
        full = np.asarray(numbers, dtype=float)
        low, high = float(full.min()), float(full.max())
        if not (math.isfinite(low) and math.isfinite(high)):  # what is nowhere must not spoil a page
            full = np.where(np.isfinite(full), full, 0.0)
            low, high = float(full.min()), float(full.max())
        step = (high - low) / 65535
        if step == 0.0 or not math.isfinite(step):
            if low not in self._constant:
                self._constant[low] = self._put(low)
            return self._constant[low]
        alike = self._moving.setdefault(_key(full, low, high), [])
        for other, number in alike:
            if np.abs(full - other).max() <= _ALIKE * step:
                return number
        alike.append((full, self._put(self._packed(full, low, step))))
        return alike[-1][1]

    def entry(self, pose: Pose, entry: int) -> int:
        """The track of an entry of a scene's tape, which many shapes may share."""
        if entry not in self._entries:
            self._entries[entry] = self.add(pose.values(entry))
        return self._entries[entry]

    def packed(self) -> str:
        """All moving tracks one after the other: the far ones, then the near ones."""
        return base64.b64encode(b"".join([*self._far, *self._near])).decode("ascii")

    def _put(self, value: Any) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _packed(self, full: np.ndarray, low: float, step: float) -> list[Any]:
        whole = np.rint((full - low) / step).astype("<u2")
        second = np.diff(whole.view("<i2"), n=2)  # modulo 65536, as those of all whole numbers of two bytes
        short = second.astype("i1")
        long = np.flatnonzero((short != second) | (short == _LONG))
        if 3 * len(long) >= len(whole) - 2:
            self._far.append(whole.tobytes())
            return [low, step, len(self._far) - 1, 0]
        if long.size:
            short[long] = _LONG
            pairs = second[long].view("i1")
            short = np.insert(short, np.repeat(long + 1, 2), pairs)
        head = whole[:2].copy()
        head[1:] -= head[:1]
        self._near.append(head.tobytes() + short.tobytes())
        self._ends.append(self._ends[-1] + len(self._near[-1]))
        return [low, step, self._ends[-2], 1]


def _key(full: np.ndarray, low: float, high: float) -> tuple[int, ...]:
    """Equal for most tracks that are alike, and for few others."""
    unit = 2.0 ** (math.frexp(high - low)[1] - 16)
    some = (low, high, full[0], full[len(full) // 3], full[-1])
    return tuple(round(float(value) / unit) for value in some)


def text(numbers: np.ndarray) -> str:
    """An array as characters that a page may hold."""
    return base64.b64encode(np.ascontiguousarray(numbers).data).decode("ascii")
