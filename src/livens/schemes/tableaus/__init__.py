"""Butcher tableaus of Runge-Kutta methods, for any number of stages.

>>> from livens import tableaus
>>> method = tableaus.gauss(3)
>>> method.order, method.symplectic, method.stiffly_accurate, round(method.stability_at_infinity, 14)
(6, True, False, -1.0)
"""

from __future__ import annotations

from livens.schemes.tableaus.families import (
    FAMILIES,
    gauss,
    lobatto_iiia,
    lobatto_iiia_iiib,
    lobatto_iiib,
    lobatto_iiic,
    lobatto_iiid,
    lobatto_iiie,
    radau_ia,
    radau_iia,
)
from livens.schemes.tableaus.interpolation import Extrapolation, Interpolant
from livens.schemes.tableaus.murua import MuruaTableau, murua
from livens.schemes.tableaus.tableau import PartitionedTableau, Tableau

__all__ = [
    "FAMILIES",
    "Extrapolation",
    "Interpolant",
    "MuruaTableau",
    "PartitionedTableau",
    "Tableau",
    "gauss",
    "lobatto_iiia",
    "lobatto_iiia_iiib",
    "lobatto_iiib",
    "lobatto_iiic",
    "lobatto_iiid",
    "lobatto_iiie",
    "murua",
    "radau_ia",
    "radau_iia",
]
