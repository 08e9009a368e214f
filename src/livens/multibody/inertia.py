"""Mass, centre of mass and inertia tensor of a rigid body."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors
from livens.types import ArrayLike
from livens.validation import check_array, check_positive


@explain_call_errors
class Inertia:
    """Spatial inertia of a rigid body: mass, centre of mass and inertia tensor, in the body frame.

    Parameters
    ----------
    mass : float
        Mass in kg.
    tensor : array_like of shape (3, 3) or (3,)
        Inertia tensor in kg m^2, or its three principal values.
    centre : array_like of shape (3,), default (0, 0, 0)
        Centre of mass in the body frame, in m.
    about : array_like of shape (3,), optional
        Point of the body frame that `tensor` refers to; by default the centre of mass.

    Raises
    ------
    ModelError
        If the tensor is not symmetric, or violates the triangle inequality of the principal moments.

    Examples
    --------
    >>> rod = Inertia(3.0, [0.25, 0.0, 0.25])  # of length 1, along the second axis
    >>> rod.about([0, 0.5, 0]).diagonal().tolist()  # seen from its end: m l^2/3
    [1.0, 0.0, 1.0]
    >>> Inertia(1.0, [1, 1, 3])
    Traceback (most recent call last):
    livens.errors.ModelError: inertia: no body has principal moments 1, 1, 3 about its centre: ...
    """

    def __init__(self, mass: float, tensor: ArrayLike, centre: ArrayLike = (0.0, 0.0, 0.0), about: Any = None) -> None:
        try:
            self.mass = check_positive("the mass", mass)
            self.centre = check_array("centre", centre, (3,))
            moments = check_array("tensor", tensor)
            full_tensor = check_array("tensor", np.diag(moments) if moments.shape == (3,) else moments, (3, 3))
            shift = np.zeros(3) if about is None else self.centre - check_array("about", about, (3,))
        except InputError as error:
            raise ModelError(f"inertia: {error}") from None
        scale = np.abs(full_tensor).max()
        if np.abs(full_tensor - full_tensor.T).max() > 1e-12 * scale:
            raise ModelError("inertia: the tensor must be symmetric")
        self.tensor = (full_tensor + full_tensor.T) / 2 - self.mass * _parallel_axis(shift)
        moments = np.linalg.eigvalsh(self.tensor)
        # triangle inequality of the principal moments: otherwise the mass density would be negative somewhere
        if moments[0] + moments[1] < moments[2] - 1e-12 * scale or moments[0] < -1e-12 * scale:
            moments_text = ", ".join(f"{moment:.6g}" for moment in moments)
            raise ModelError(
                f"inertia: no body has principal moments {moments_text} about its centre: none may be negative, "
                "nor greater than the sum of the two others"
            )

    def about(self, point: ArrayLike) -> np.ndarray:
        """Return the inertia tensor about another point, by the parallel-axis theorem.

        Parameters
        ----------
        point : array_like of shape (3,)
            Point in the body frame, in m.

        Returns
        -------
        ndarray of shape (3, 3)
            Inertia tensor in kg m^2.
        """
        return np.asarray(self.tensor + self.mass * _parallel_axis(self.centre - check_array("point", point, (3,))))

    @property
    def euler_tensor(self) -> np.ndarray:
        """Euler tensor ``integral X X^T dm`` about the centre of mass: the inertia of the directors.

        See Kinon et al. 2023, eq. 60.

        Returns
        -------
        ndarray of shape (3, 3)
            Euler tensor in kg m^2.
        """
        return np.asarray(0.5 * np.trace(self.tensor) * np.eye(3) - self.tensor)

    def __repr__(self) -> str:
        return f"Inertia(mass={self.mass}, tensor={self.tensor.tolist()}, centre={self.centre.tolist()})"


def _parallel_axis(shift: np.ndarray) -> np.ndarray:
    return np.asarray((shift @ shift) * np.eye(3) - np.outer(shift, shift))
