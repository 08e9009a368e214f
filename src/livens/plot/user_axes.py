"""User axes: adapter that lets plots be drawn into existing axes as if they were a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from livens.errors import InputError

#: Estimated number of legend entries side by side.
_ENTRIES = 3
#: Gap between panels, as a fraction of the axes.
_GAP = 0.14

_active: ContextVar[Axes | None] = ContextVar("into", default=None)


class AxesAdapter:
    """Figure interface of user axes; several panels, and 3-D axes, become insets of the axes."""

    def __init__(self, axes: Axes) -> None:
        self._axes = axes

    def add_subplot(self, *position: object, projection: str | None = None) -> Any:
        if projection is None:
            return self._axes
        self._axes.set_axis_off()
        return self._axes.inset_axes((0.0, 0.0, 1.0, 1.0), projection=projection)

    def subplots(
        self,
        rows: int = 1,
        columns: int = 1,
        *,
        sharex: bool = False,
        squeeze: bool = True,
        height_ratios: Sequence[float] | None = None,
    ) -> Any:
        if rows * columns == 1:
            return self._axes if squeeze else np.array([[self._axes]])
        self._axes.set_axis_off()
        heights = np.array(height_ratios or [1.0] * rows, dtype=float)
        heights *= (1 - _GAP * (rows - 1)) / heights.sum()
        width = (1 - _GAP * (columns - 1)) / columns
        panels = np.empty((rows, columns), dtype=object)
        for i in range(rows):
            bottom = 1 - heights[: i + 1].sum() - _GAP * i
            for j in range(columns):
                panels[i, j] = self._axes.inset_axes((j * (width + _GAP), bottom, width, heights[i]))
                if sharex and i < rows - 1:
                    panels[i, j].tick_params(labelbottom=False)
        return panels if not squeeze else panels[:, 0] if columns == 1 else panels[0] if rows == 1 else panels

    def suptitle(self, text: str, color: object = None, **_: object) -> None:
        legend = self._axes.get_legend()
        rows = 0 if legend is None else -(-len(legend.get_texts()) // _ENTRIES)
        self._axes.set_title(text, loc="left", color=color, pad=6 + 12 * rows)

    def legend(self, **options: object) -> None:
        panel: Any = self._axes.child_axes[-1] if self._axes.child_axes else self._axes
        panel.legend(loc="upper left", ncols=options.get("ncols", 1))

    def align_ylabels(self) -> None:
        """Do nothing: alignment belongs to the user's figure."""


@contextmanager
def use_axes(axes: object) -> Iterator[None]:
    """Draw figures of this context into the given axes; with None, into new figures."""
    if axes is not None and not isinstance(axes, Axes):
        raise InputError(f"ax must be axes of matplotlib, for example from plt.subplots(), got {axes!r}")
    token = _active.set(axes)
    try:
        yield
    finally:
        _active.reset(token)


def active_axes() -> Figure | None:
    """Return the adapter of the active user axes, or None."""
    axes = _active.get()
    return None if axes is None else cast(Figure, AxesAdapter(axes))
