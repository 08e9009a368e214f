"""Which rows of a run a film shows, and what stands in them: small enough to be sent around."""

from __future__ import annotations

import base64
import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.analysis.named import at_nodes
from livens.errors import InputError
from livens.models.scene import Pose

if TYPE_CHECKING:
    from livens.results.result import Result

#: Numbers that one page may hold by default: some megabytes.
_NUMBERS = 1_500_000
_FEWEST, _MOST = 200, 6000


def check_frames(frames: int | None) -> int | None:
    """A number of frames that somebody asks for."""
    if frames is not None and (isinstance(frames, bool) or not isinstance(frames, (int, np.integer)) or frames < 2):
        raise InputError(f"frames must be a whole number of at least 2, got {frames!r}")
    return frames


def chosen_rows(t: np.ndarray, moving: int, frames: int | None = None) -> np.ndarray:
    """Rows at equal distances in time: at most `frames`, or as many as a page can hold of so many moving numbers.

    >>> chosen_rows(np.linspace(0, 1, 1001), 10, 5).tolist()
    [0, 250, 500, 750, 1000]
    """
    count = check_frames(frames) or int(np.clip(_NUMBERS // max(1, moving), _FEWEST, _MOST))
    if len(t) <= count:
        return np.arange(len(t))
    times = np.linspace(t[0], t[-1], count)
    after = np.searchsorted(t, times).clip(1, len(t) - 1)
    nearer = np.where(times - t[after - 1] < t[after] - times, after - 1, after)
    return np.unique(nearer)


class Tracks:
    """Numbers over frames, each rounded to one of 65536 values between its least and its greatest."""

    def __init__(self, frames: int) -> None:
        self.values: list[Any] = []  # a number where nothing moves, else where the track is and how to read it
        self._packed: list[np.ndarray] = []
        self._frames = frames
        self._known: dict[bytes, int] = {}
        self._entries: dict[int, int] = {}

    def add(self, numbers: Any) -> int:
        """The number of a track; equal tracks are one."""
        full = np.broadcast_to(np.asarray(numbers, dtype=float), self._frames)
        low, high = float(full.min()), float(full.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            full = np.where(np.isfinite(full), full, 0.0)
            low, high = float(full.min()), float(full.max())
        key = full.tobytes() if low != high else np.float64(low).tobytes()
        if key in self._known:
            return self._known[key]
        if low == high:
            self.values.append(low)
        else:
            step = (high - low) / 65535
            self._packed.append(np.round((full - low) / step).astype("<u2"))
            self.values.append([low, step, len(self._packed) - 1])
        self._known[key] = len(self.values) - 1
        return self._known[key]

    def entry(self, pose: Pose, entry: int) -> int:
        """The track of an entry of a scene's tape, which many shapes may share."""
        if entry not in self._entries:
            self._entries[entry] = self.add(pose.values(entry))
        return self._entries[entry]

    def packed(self) -> str:
        """All moving tracks one after the other."""
        return text(np.concatenate(self._packed) if self._packed else np.zeros(0, dtype="<u2"))


def text(numbers: np.ndarray) -> str:
    """An array as characters that a page may hold."""
    return base64.b64encode(np.ascontiguousarray(numbers).tobytes()).decode()


def where(result: Result) -> np.ndarray:
    """What the scene of a run is a function of: its coordinates, or the states of a model of these."""
    return np.asarray(result.q if "q" in result.stored else result.x)


def part(result: Result, rows: np.ndarray) -> Result:
    """A run with some of its rows only; multipliers, which belong to steps, are brought to the rows before."""
    chosen = slice(None) if len(rows) == len(result.t) else rows  # all of a long run are not copied
    arrays = {name: np.asarray(getattr(result, name))[chosen] for name in result.stored if name != "multipliers"}
    if "multipliers" in result.stored:
        arrays["multipliers"] = at_nodes(result).T[chosen]
    record = copy.copy(result.record)
    record.facts = copy.copy(result.facts)
    record.facts.every = max(2, result.facts.every)
    return type(result)(arrays, record, system=result._system, path=result.path)
