"""Figure 2 of paper V in Modin 2009: stability region of the semi-explicit scheme."""

from __future__ import annotations

import functools

import numpy as np
from matplotlib.figure import Figure

from livens.models.hamiltonian.model import Force, Hamiltonian
from livens.plot.style import GREY, PAGE, PALETTE, house_style, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import claim_above, claim_below
from livens.reproduce.modin_2009.runs import with_title
from livens.run.simulate import simulate

_ALPHAS = (0.25, 0.5, 0.75)


#: Number of oscillators integrated in one system.
_BATCH_SIZE = 32
_NAMES = ("k_A", "c_A", "k_B", "c_B")


@functools.cache
def _oscillators() -> Hamiltonian:
    """Return a system of oscillators ``q'' = -(k_A + k_B) q - (c_A + c_B) v``, with A expensive and B cheap."""
    return Hamiltonian(
        [f"q{i}" for i in range(_BATCH_SIZE)],
        kinetic=lambda p: 0.5 * (p @ p),
        forces=[
            Force(lambda q, v, k: -k.k_A * q - k.c_A * v, expensive=True),
            Force(lambda q, v, k: -k.k_B * q - k.c_B * v),
        ],
        parameters={name: np.zeros(_BATCH_SIZE) for name in _NAMES},
    )


def step_eigenvalues(alpha: float, beta: float, **values: object) -> np.ndarray:
    """Return the eigenvalues of a step of size 1 of `semi-explicit:alpha,beta`, for arrays k_A, c_A, k_B, c_B.

    The step matrix is computed by the scheme from the initial states (1, 0) and (0, 1).

    >>> eigenvalues = step_eigenvalues(0.5, 0.5, k_A=np.array([3.5, 4.5]))
    >>> [bool(np.abs(pair).max() < 1 + 1e-12) for pair in eigenvalues]
    [True, False]
    """
    parts = np.array(np.broadcast_arrays(*(np.asarray(values.get(name, 0.0), float) for name in _NAMES)))
    count = parts.shape[1]
    parts = np.pad(parts, ((0, 0), (0, -count % _BATCH_SIZE)))
    step_matrices = [
        _step_matrices(f"semi-explicit:{alpha:g},{beta:g}", dict(zip(_NAMES, part, strict=True)))
        for part in np.split(parts, parts.shape[1] // _BATCH_SIZE, axis=1)
    ]
    return np.asarray(np.linalg.eigvals(np.concatenate(step_matrices)[:count]))


def _step_matrices(scheme: str, parameters: dict[str, np.ndarray]) -> np.ndarray:
    """Return the step matrix of each oscillator, shape (n, 2, 2)."""
    maps = np.zeros((_BATCH_SIZE, 2, 2))
    for i, (q0, p0) in enumerate(((1.0, 0.0), (0.0, 1.0))):
        result = simulate(
            _oscillators(),
            np.full(_BATCH_SIZE, q0),
            p0=np.full(_BATCH_SIZE, p0),
            scheme=scheme,
            h=1.0,
            t_end=1.0,
            parameters=parameters,
            progress=False,
        )
        maps[:, 0, i], maps[:, 1, i] = result.q[-1], result.p[-1]
    return maps


def is_in_stability_region(alpha: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return whether ``(h c, h^2 k)`` lies in the stability region of theorem 3."""
    return (y >= 0) & (x <= 2 - alpha * y) & (x >= (0.5 - alpha) * y)


def _grid() -> tuple[np.ndarray, np.ndarray]:
    """Return grid points in and around the region, none on its boundary."""
    x, y = np.meshgrid(np.linspace(-1.217, 2.713, 22), np.linspace(-0.317, 4.619, 22))
    return x.ravel(), y.ravel()


@functools.cache
def _spectral(alpha: float) -> np.ndarray:
    x, y = _grid()
    return step_eigenvalues(alpha, 0.5, c_A=x, k_A=y)


def _theorem_6_points() -> dict[str, np.ndarray]:
    """Return points for theorem 6: (c_A, k_A) in the closed region, k_B and c_B from zero to very stiff."""
    sizes = np.array([0.0, 1e-2, 1.0, 1e2, 1e6])
    y, fractions = np.array([0.02, 1.0, 3.0, 3.98]), np.array([0.0, 0.5, 1.0])
    y, fraction, k_B, c_B = (a.ravel() for a in np.meshgrid(y, fractions, sizes, sizes, indexing="ij"))
    return dict(k_A=y, fraction=fraction, k_B=k_B, c_B=c_B)


def _theorem_6_eigenvalues(alpha: float, beta: float) -> np.ndarray:
    """Return the largest eigenvalue at these points, with c_A from the left to the right side of the region."""
    points = _theorem_6_points()
    left, right = (0.5 - alpha) * points["k_A"], 2 - alpha * points["k_A"]
    c_A = left + points.pop("fraction") * (right - left)
    return np.asarray(np.abs(step_eigenvalues(alpha, beta, c_A=c_A, **points)).max(axis=1))


@figure(
    "modin-2009",
    "V.2",
    "Stability region of the semi-explicit scheme",
    note="Eigenvalues are those of steps computed by the scheme. The proof of theorem 6 states that the left-hand side "
    "of (ii) decreases with c_B and k_B. For small c_A and k_A it increases, but stays below "
    "2: the theorem holds.",
)
@house_style()
def regions() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 3.2)
    for axes, alpha in zip(picture.subplots(1, 3, sharex=True, sharey=True), _ALPHAS, strict=True):
        x, y = _grid()
        stable = np.abs(_spectral(alpha)).max(axis=1) <= 1 + 1e-12
        axes.plot(x[stable], y[stable], ".", color=PALETTE[0], markersize=2.5, label="stable")
        axes.plot(x[~stable], y[~stable], "x", color=PALETTE[1], markersize=2.0, markeredgewidth=0.4, label="unstable")
        corners = np.array([(0, 0), (2, 0), (2 - 4 * alpha, 4), (0, 0)])
        axes.plot(*corners.T, color="black", linewidth=1.0)
        root = np.linspace(0, 2, 100)
        critical = 2 * root - root**2 * (1 + 2 * alpha) / 2
        in_region = is_in_stability_region(alpha, critical, root**2)
        axes.plot(critical[in_region], root[in_region] ** 2, color=PALETTE[2], linewidth=1.2, label="critical damping")
        axes.plot(2 * root, root**2, color=GREY, linewidth=0.8, linestyle="--", label="critical damping, exact flow")
        axes.set(xlim=(-1.3, 2.8), ylim=(-0.4, 4.7), xlabel="$h c$")
        axes.set_title(rf"$\alpha$ = {alpha:g}", color=GREY)
    picture.axes[0].set_ylabel("$h^2 k$")
    picture.legend(*picture.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return with_title(picture, "semi-explicit, B = 0"), _claims()


def _claims() -> list[Claim]:
    claims = []
    for alpha in _ALPHAS:
        x, y = _grid()
        eigenvalues = _spectral(alpha)
        stable = np.abs(eigenvalues).max(axis=1) <= 1 + 1e-12
        wrong = int(np.sum(stable != is_in_stability_region(alpha, x, y)))
        text = f"Theorem 3, alpha = {alpha:g}: grid points where predicted and computed stability differ."
        claims.append(Claim(text, f"{wrong} of {len(x)}, {stable.sum()} of them stable", wrong == 0))
        in_region = is_in_stability_region(alpha, x, y)
        is_oscillatory = np.abs(eigenvalues.imag).max(axis=1) > 0
        below_critical = x < 2 * np.sqrt(np.maximum(y, 0)) - y * (1 + 2 * alpha) / 2
        wrong = int(np.sum(is_oscillatory[in_region] != below_critical[in_region]))
        text = f"Corollary 4, alpha = {alpha:g}: points where predicted and computed oscillation differ."
        claims.append(Claim(text, f"{wrong} of {in_region.sum()}", wrong == 0))
    for beta in (0.5, 0.8, 1.0):
        largest = max(float(_theorem_6_eigenvalues(alpha, beta).max()) for alpha in _ALPHAS)
        count = 3 * len(_theorem_6_points()["k_B"])
        text = f"Theorem 6, beta = {beta:g}: largest eigenvalue minus 1, at {count} points with k_B, c_B up to 1e6."
        claims.append(claim_below(text, largest - 1, 1e-7))
    largest_unstable = max(float(_theorem_6_eigenvalues(alpha, 0.4).max()) for alpha in _ALPHAS)
    return [
        *claims,
        claim_above(
            "With beta = 0.4 the theorem does not hold: largest eigenvalue minus 1.", largest_unstable - 1, 0.01
        ),
    ]
