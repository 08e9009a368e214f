"""Linear trend of a long time series with confidence interval, computed from bin averages in constant memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Minimum number of bins of a long series; the maximum is twice as large.
_BINS = 32
#: Minimum number of bins for a trend.
_MIN_BINS = 8


@dataclass(frozen=True)
class Trend:
    """Change per unit time, with the half-width of its 95 % confidence interval."""

    rate: float
    uncertainty: float

    @property
    def significant(self) -> bool:
        """True if the rate exceeds twice the interval (about four standard deviations), to avoid false alarms."""
        return abs(self.rate) > 2 * self.uncertainty


class BinnedSeries:
    """Bin averages of a time series that is added in blocks, one column per component.

    All bins have the same number of values; when there are too many bins, adjacent bins are merged.
    """

    def __init__(self) -> None:
        self._width = 1  # values per bin
        self._bins = np.zeros((0, 0))  # sums: column 0 is time, the others are the components
        self._open_bin = np.zeros(0)  # sum of the last, incomplete bin
        self._open_count = 0

    def add(self, t: np.ndarray, y: np.ndarray) -> None:
        """Add a block of the series, in the order of time."""
        values = np.column_stack([t, y])
        if not self._open_bin.size:
            self._open_bin = np.zeros(values.shape[1])
            self._bins = np.zeros((0, values.shape[1]))
        while len(values):
            # limits the number of bins that are added before they are merged
            chunk, values = np.split(values, [self._width * _BINS])
            self._accumulate(chunk)

    def _accumulate(self, values: np.ndarray) -> None:
        missing = self._width - self._open_count
        self._open_bin = self._open_bin + values[:missing].sum(axis=0)
        self._open_count += len(values[:missing])
        if self._open_count < self._width:
            return
        remaining = values[missing:]
        full = len(remaining) // self._width * self._width
        full_bins = remaining[:full].reshape(-1, self._width, values.shape[1]).sum(axis=1)
        self._bins = np.vstack([self._bins, self._open_bin, full_bins])
        self._open_bin, self._open_count = remaining[full:].sum(axis=0), len(remaining) - full
        while len(self._bins) >= 2 * _BINS:
            self._merge_bins()

    def _merge_bins(self) -> None:
        if len(self._bins) % 2:
            self._open_bin, self._open_count = self._open_bin + self._bins[-1], self._open_count + self._width
            self._bins = self._bins[:-1]
        self._bins = self._bins[0::2] + self._bins[1::2]
        self._width *= 2

    def trends(self) -> list[Trend | None]:
        """Return one trend per component; None where the series is too short or not finite."""
        if len(self._bins) < _MIN_BINS:
            return [None] * max(0, self._bins.shape[1] - 1)
        means = self._bins / self._width
        return [fit_line(means[:, 0], means[:, i]) for i in range(1, means.shape[1])]


def fit_line(t: np.ndarray, y: np.ndarray) -> Trend | None:
    """Fit a straight line by least squares; correlated residuals reduce the number of independent values."""
    if not (np.all(np.isfinite(y)) and np.all(np.isfinite(t))) or np.ptp(t) == 0:
        return None
    from scipy.special import stdtrit  # slow import, needed for long runs only

    n, unit = len(t), float(np.ptp(t))
    x = (t - t.mean()) / unit
    scale = float(np.abs(y).max()) or 1.0  # squares of round-off would underflow
    y = y / scale
    spread = float(x @ x)
    rate = float(x @ y) / spread
    residual = y - y.mean() - rate * x
    independent = max(n / _correlation_time(residual), 3.0)
    variance = float(residual @ residual) / n * independent / (independent - 2.0)
    error = np.sqrt(variance / (spread / n * independent))
    with np.errstate(over="ignore"):  # of steps as short as 1e-300
        rates = np.array([rate, stdtrit(independent - 2.0, 0.975) * error]) * scale / unit
    return Trend(*rates.tolist())


def _correlation_time(residual: np.ndarray) -> float:
    """Return the integrated autocorrelation time ``1 + 2 sum rho_k``.

    The sum ends at the first correlation that is not positive. A geometric series of ratio ``rho_1`` is a lower bound.
    The bias ``(2 + 4 rho)/n`` of ``rho_1`` by the fitted line is corrected.
    """
    power, n = float(residual @ residual), len(residual)
    if power == 0:
        return 1.0
    rho = [float(residual[lag:] @ residual[:-lag]) / power for lag in range(1, n // 2)]
    total = 1.0
    for value in rho:
        if value <= 0:
            break
        total += 2 * value
    corrected = rho[0] + (2 + 4 * rho[0]) / n
    geometric = (1 + corrected) / (1 - corrected) if corrected < 1 else float(n)
    return max(total, geometric, 1.0)
