"""How the state of a run is laid out in one vector: named parts, one after the other."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np


class Layout:
    """Names and sizes of the parts of a state.

    >>> layout = Layout(q=2, p=2, t=1)
    >>> layout["p"], layout.size
    (slice(2, 4, None), 5)
    >>> layout.vector({"q": [1, 2], "t": 0.5})
    array([1. , 2. , 0. , 0. , 0.5])
    """

    def __init__(self, **sizes: int) -> None:
        self.sizes = dict(sizes)

    @functools.cached_property
    def _slices(self) -> dict[str, slice]:
        ends = np.cumsum([0, *self.sizes.values()]).tolist()
        return {name: slice(a, b) for name, a, b in zip(self.sizes, ends[:-1], ends[1:], strict=True)}

    @functools.cached_property
    def size(self) -> int:
        return sum(self.sizes.values())

    def __contains__(self, name: str) -> bool:
        return name in self.sizes

    def __getitem__(self, name: str) -> slice:
        return self._slices[name]

    def with_(self, **sizes: int) -> Layout:
        """The same with further parts at the end."""
        return Layout(**self.sizes, **sizes)

    def name_of(self, entry: int) -> str:
        """What an entry of the state is called."""
        return next(f"{name}[{entry - a.start}]" for name, a in self._slices.items() if a.start <= entry < a.stop)

    def vector(self, values: Mapping[str, Any]) -> np.ndarray:
        """A state of these parts; what is not given is zero."""
        z, slices = np.zeros(self.size), self._slices
        for name, value in values.items():
            z[slices[name]] = value
        return z
