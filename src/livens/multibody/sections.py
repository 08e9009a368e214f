"""Cross-sections of beams: stiffness, mass and inertia per length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.types import ArrayLike
from livens.validation import check_array, check_number, check_positive

#: Largest size of a section in m; its fourth power must not overflow.
_MAX_LENGTH = 1e60


@explain_call_errors
@dataclass(frozen=True, eq=False)
class Section:
    """Cross-section of a beam: stiffness and mass per length; the first axis is along the beam.

    Parameters
    ----------
    stiffness : array_like of shape (6,) or (6, 6)
        ``EA GA2 GA3 GJ EI2 EI3`` in N and N m^2: axial, shear along both section axes, torsion, bending about both
        axes; or a symmetric positive definite matrix that couples them.
    mass : float
        Mass per length in kg/m.
    inertia : array_like of shape (3,)
        Moments of inertia per length about the three axes, in kg m.
    radius : float
        Radius of the visual geometry in m.

    Raises
    ------
    InputError
        If the stiffness is not positive definite, or the moments violate the triangle inequality.

    Examples
    --------
    >>> steel = dict(E=210e9, nu=0.3, density=7850)
    >>> bar = Section.rectangular(0.02, 0.01, **steel)
    >>> round(float(bar.stiffness[0]))  # E A
    42000000
    >>> Section.circular(0.01, E=-1, nu=0.3, density=7850)
    Traceback (most recent call last):
    livens.errors.InputError: E must be greater than 0, got -1
    """

    stiffness: Any
    mass: float
    inertia: Any
    radius: float

    def __post_init__(self) -> None:
        values = check_array("the stiffness of a section", self.stiffness)
        if values.shape not in ((6,), (6, 6)):
            raise InputError(f"the stiffness of a section is six numbers or a 6x6 matrix, got shape {values.shape}")
        matrix = np.diag(values) if values.ndim == 1 else values
        size = float(np.abs(matrix).max())
        if np.abs(matrix - matrix.T).max() > 1e-9 * size:
            raise InputError("the stiffness of a section must be symmetric")
        if not np.linalg.eigvalsh(matrix)[0] > 0:
            reason = (
                "EA GA2 GA3 GJ EI2 EI3 must all be positive" if values.ndim == 1 else "it must be positive definite"
            )
            raise InputError(f"the stiffness of a section is not positive definite: {reason}, got {values.tolist()}")
        inertia = np.diag(check_array("the inertia of a section", self.inertia, (3,)))
        mass, radius = check_positive("the mass of a section", self.mass), check_positive("the radius", self.radius)
        moments = np.sort(np.diag(inertia))
        if not moments[0] > 0 or moments[2] > (moments[0] + moments[1]) * (1 + 1e-12):
            raise InputError(
                f"the inertia of a section must be positive, and no moment greater than the sum of the two others, got "
                f"{np.diag(inertia).tolist()}"
            )
        for name, value in (("stiffness", values), ("mass", mass), ("inertia", np.diag(inertia)), ("radius", radius)):
            object.__setattr__(self, name, value)

    @property
    def is_coupled(self) -> bool:
        """True if the stiffnesses are coupled by a 6x6 matrix.

        Returns
        -------
        bool
            True for a matrix.
        """
        return bool(np.ndim(self.stiffness) == 2)

    def planar_stiffness(self) -> np.ndarray:
        """Return the stiffnesses ``EA GA EI`` in the plane of the first two axes.

        Returns
        -------
        ndarray of shape (3,)
            Axial, shear and bending stiffness.

        Raises
        ------
        InputError
            If the stiffness is a 6x6 matrix.
        """
        if self.is_coupled:
            raise InputError("a section in the plane has three stiffnesses, EA, GA and EI: it takes no 6x6 matrix")
        return np.asarray(self.stiffness[[0, 1, 5]])

    @classmethod
    def general(
        cls, *, EA: float, GA: float, GJ: float, EI: float, mass: float, inertia: ArrayLike, radius: float | None = None
    ) -> Section:
        """Return a section with given stiffnesses.

        Parameters
        ----------
        EA : float
            Axial stiffness in N.
        GA : float or pair of float
            Shear stiffness in N, equal or separate for the two section axes.
        GJ : float
            Torsional stiffness in N m^2.
        EI : float or pair of float
            Bending stiffness in N m^2, equal or separate for the two section axes.
        mass : float
            Mass per length in kg/m.
        inertia : float or array_like of shape (3,)
            Moments of inertia per length in kg m.
        radius : float, optional
            Radius of the visual geometry in m; by default that of a homogeneous round section.

        Returns
        -------
        Section
            Cross-section.
        """
        shear, bending = _two_values("GA", GA), _two_values("EI", EI)
        stiffness = [check_number("EA", EA), *shear, check_number("GJ", GJ), *bending]
        moments = check_array("the inertia", inertia)
        moments_3 = np.broadcast_to(moments, (3,)) if moments.ndim == 0 else moments
        if radius is None:  # radius of the homogeneous round section with these stiffnesses
            radius = 2 * float(np.sqrt(abs(bending[0] / stiffness[0]))) if stiffness[0] else 1.0
        return cls(stiffness, mass, moments_3, radius)

    @classmethod
    def circular(
        cls,
        radius: float,
        *,
        E: float,
        density: float,
        nu: float = 0.3,
        inner: float = 0.0,
        shear_factor: float | None = None,
    ) -> Section:
        """Return a circular or annular section.

        Parameters
        ----------
        radius : float
            Outer radius in m.
        E : float
            Young's modulus in Pa.
        density : float
            Density in kg/m^3.
        nu : float, default 0.3
            Poisson's ratio.
        inner : float, default 0
            Inner radius in m.
        shear_factor : float, optional
            Shear correction factor. By default 6 (1 + nu)/(7 + 6 nu) (Cowper) for a solid circle and 0.5 for a tube.

        Returns
        -------
        Section
            Cross-section.
        """
        r, hole = _checked_length("radius", radius), check_number("inner", inner)
        if not 0 <= hole < r:
            raise InputError(f"inner must be at least 0 and below the radius {r:g}, got {hole:g}")
        A, I = np.pi * (r**2 - hole**2), np.pi / 4 * (r**4 - hole**4)  # noqa: E741
        usual = 0.5 if hole else 6 * (1 + nu) / (7 + 6 * nu)
        return cls._homogeneous(E, nu, density, A, 2 * I, (I, I), usual if shear_factor is None else shear_factor, r)

    @classmethod
    def rectangular(
        cls, width: float, height: float, *, E: float, density: float, nu: float = 0.3, shear_factor: float = 5 / 6
    ) -> Section:
        """Return a solid rectangular section.

        Parameters
        ----------
        width : float
            Width along the first section axis (second axis of the beam), in m.
        height : float
            Height along the second section axis, in m.
        E : float
            Young's modulus in Pa.
        density : float
            Density in kg/m^3.
        nu : float, default 0.3
            Poisson's ratio.
        shear_factor : float, default 5/6
            Shear correction factor.

        Returns
        -------
        Section
            Cross-section.
        """
        b, h = _checked_length("width", width), _checked_length("height", height)
        torsion = _rectangle_torsion(b, h)
        bending = b * h**3 / 12, h * b**3 / 12
        return cls._homogeneous(E, nu, density, b * h, torsion, bending, shear_factor, float(np.sqrt(b * h / np.pi)))

    @classmethod
    def _homogeneous(
        cls,
        E: float,
        nu: float,
        density: float,
        A: float,
        torsion: float,
        bending: tuple[float, float],
        factor: float,
        radius: float,
    ) -> Section:
        """Return a homogeneous section; `torsion` is the torsion constant, `bending` the second moments of area."""
        E, rho, factor = (
            check_positive("E", E),
            check_positive("density", density),
            check_positive("shear_factor", factor),
        )
        if not -1 < check_number("nu", nu) <= 0.5:
            raise InputError(f"nu must be above -1 and at most 0.5, got {nu!r}")
        G = E / (2 * (1 + nu))
        I2, I3 = bending
        stiffness = [E * A, factor * G * A, factor * G * A, G * torsion, E * I2, E * I3]
        return cls(stiffness, rho * A, [rho * (I2 + I3), rho * I2, rho * I3], radius)


def _two_values(name: str, value: float) -> np.ndarray:
    values = check_array(name, value)
    if values.shape not in ((), (1,), (2,)):
        raise InputError(f"{name} must be one number, or two for the two axes of the section, got {value!r}")
    return np.broadcast_to(values, (2,))


def _checked_length(name: str, value: float) -> float:
    """Return a checked length whose powers do not overflow."""
    length = check_positive(name, value)
    if length > _MAX_LENGTH:
        raise InputError(f"{name} must be at most {_MAX_LENGTH:g}, got {length:g}")
    return length


def _rectangle_torsion(width: float, height: float) -> float:
    """Return the Saint-Venant torsion constant of a rectangle, by its series."""
    a, b = max(width, height), min(width, height)
    n = np.arange(1, 40, 2)
    return float(a * b**3 / 3 * (1 - 192 / np.pi**5 * b / a * np.sum(np.tanh(n * np.pi * a / (2 * b)) / n**5)))
