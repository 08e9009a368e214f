"""House style of all figures, independent of the user's matplotlib settings."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from livens.analysis.step_sizes import uses_fictive_time
from livens.errors import InputError, suggestion
from livens.plot.user_axes import active_axes
from livens.validation import check_path

if TYPE_CHECKING:
    from livens.results.result import Result

#: Column and page width of a paper, in inches.
COLUMN, PAGE = 3.5, 7.2
#: Colour-blind safe colours of Okabe and Ito, without yellow, which is too pale on paper.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
#: Colours of captions and of the round-off band.
GREY, BAND = "#555555", "#E4E4E4"
#: Height of a row of a legend, in inches.
LEGEND_ROW = 0.15
SUFFIXES = ("png", "pdf", "svg")

_SETTINGS = {
    "agg.path.chunksize": 10000,  # long curves overflow the renderer otherwise
    "axes.edgecolor": "#333333",
    "axes.formatter.useoffset": False,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 7,
    "axes.xmargin": 0.01,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    "figure.dpi": 200,
    "figure.titlesize": 7,
    "font.size": 8,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.4,
    "legend.columnspacing": 1.2,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "lines.linewidth": 1.0,
    "pdf.fonttype": 42,  # text that journals accept and readers can search
    "svg.fonttype": "none",
    "xtick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.labelsize": 7,
    "ytick.major.width": 0.6,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Apply the house style of matplotlib within the context; also a decorator."""
    colours = matplotlib.rcsetup.cycler(color=list(PALETTE))
    with matplotlib.style.context(["default", {**_SETTINGS, "axes.prop_cycle": colours}]):
        yield


class StyledFigure(Figure):
    """Figure that is saved in the house style and shown in notebooks."""

    def savefig(self, fname: Any, **options: Any) -> None:
        with house_style():
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


_windows: ContextVar[bool] = ContextVar("windows", default=False)


@contextmanager
def windows(enabled: bool) -> Iterator[None]:
    """Create figures in this context with pyplot, so that ``plt.show()`` opens windows for them."""
    token = _windows.set(enabled and _has_display())
    try:
        yield
    finally:
        _windows.reset(token)


def _has_display() -> bool:
    """Return True if there is a display other than a notebook, which would show a pyplot figure twice."""
    screen = sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return screen and "ipykernel" not in sys.modules


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches; only pyplot figures need to be closed."""
    axes = active_axes()
    if axes is not None:
        return axes
    if _windows.get():
        from matplotlib import pyplot

        return pyplot.figure(figsize=(width, height), layout="constrained", FigureClass=StyledFigure)
    figure = StyledFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # off-screen, independent of the selected backend
    return figure


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure to a file: png, pdf or svg by its suffix."""
    path = Path(check_path("the path of a figure", path))
    check_suffix(path.suffix.removeprefix("."))
    try:
        figure.savefig(path)
    except OSError as error:
        raise InputError(f"cannot write the figure '{path}': {error.strerror or error}") from None
    return path


def check_suffix(suffix: str) -> None:
    if suffix.lower() not in SUFFIXES:
        raise InputError(f"a figure cannot be written as '{suffix}'{suggestion(suffix, SUFFIXES)}")


def caption(figure: Figure, result: Result, note: str = "") -> None:
    """Add a caption with problem, scheme and step size above the plot."""
    info = result.info
    step = (
        "controlled steps"
        if info.control
        else f"h = {info.h:g}" + (" (fictive)" if uses_fictive_time(result) else " s")
    )
    parts = [escaped(info.problem or info.name), info.scheme, step, note]
    figure.suptitle(", ".join(part for part in parts if part), x=0.01, ha="left", color=GREY)


def legend(axes: Axes, *entries: Artist) -> None:
    """Place a legend above the panel: the given entries, or all labelled curves."""
    handles = list(entries) or axes.get_legend_handles_labels()[0]
    columns = legend_columns([str(handle.get_label()) for handle in handles])
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2, borderpad=0.2
    )


def legend_columns(labels: Sequence[str]) -> int:
    """Return the number of legend entries side by side in a paper's column."""
    widths = [0.36 + 0.05 * len(label.replace("$", "")) for label in labels]  # estimated, in inches
    available = COLUMN - 0.7
    fitting = max(1, len(labels) if sum(widths) <= available else int(available / max(widths)))
    rows = -(-len(labels) // fitting)
    return -(-len(labels) // rows)


def legend_rows(labels: Sequence[str]) -> int:
    """Return the number of rows of a legend."""
    return -(-len(labels) // legend_columns(labels)) if labels else 0


def equal_height(points: np.ndarray, labels: Sequence[str]) -> float:
    """Return the height of a column-wide figure with equal units on both axes and a legend, without unused space."""
    width, height = np.ptp(points, axis=0)
    panel = np.clip(height / (width or 1.0) * (COLUMN - 0.6), 0.8, 4.5)
    return float(panel + 0.55 + LEGEND_ROW * legend_rows(labels))


def escaped(name: str) -> str:
    """Return a name with dollar signs escaped, so that it is not rendered as a formula."""
    return name.replace("$", r"\$")
