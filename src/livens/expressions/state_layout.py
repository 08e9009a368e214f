"""Layout of the state vector: named, contiguous parts."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from livens.types import FloatArray


class Layout:
    """Names and sizes of the parts of a state vector.

    >>> layout = Layout(q=2, p=2, t=1)
    >>> layout["p"], layout.size
    (slice(2, 4, None), 5)
    >>> layout.pack({"q": [1, 2], "t": 0.5})
    array([1. , 2. , 0. , 0. , 0.5])
    """

    def __init__(self, **sizes: int) -> None:
        self.sizes = dict(sizes)

    @functools.cached_property
    def _slices(self) -> dict[str, slice]:
        offsets = np.cumsum([0, *self.sizes.values()]).tolist()
        return {name: slice(a, b) for name, a, b in zip(self.sizes, offsets[:-1], offsets[1:], strict=True)}

    @functools.cached_property
    def size(self) -> int:
        return sum(self.sizes.values())

    def __contains__(self, name: str) -> bool:
        return name in self.sizes

    def __getitem__(self, name: str) -> slice:
        return self._slices[name]

    def extended(self, **sizes: int) -> Layout:
        """Return the layout extended by further parts at the end."""
        return Layout(**self.sizes, **sizes)

    def entry_label(self, entry: int) -> str:
        """Return the label of an entry of the state vector, such as ``q[1]``."""
        return next(f"{name}[{entry - a.start}]" for name, a in self._slices.items() if a.start <= entry < a.stop)

    def pack(self, values: Mapping[str, FloatArray]) -> np.ndarray:
        """Pack named values into a state vector; missing parts are zero."""
        z, slices = np.zeros(self.size), self._slices
        for name, value in values.items():
            z[slices[name]] = value
        return z
