"""Studies: several runs side by side, and one step under the lens.

>>> import livens as lv
>>> study = lv.study.converge(lv.problems.load("simple-pendulum"), "livens-em,livens-midpoint", t_end=1.0)
>>> [round(curve.fits["q"].order, 1) for curve in study.curves]
[2.0, 2.0]
"""

from __future__ import annotations

from livens.analysis.study.accuracy import to_accuracy
from livens.analysis.study.comparison import Comparison, compare
from livens.analysis.study.convergence import Convergence, converge, work_precision
from livens.analysis.study.fitting import ParameterFit, fit
from livens.analysis.study.geometry import reversibility_defect, symplecticity_defect
from livens.analysis.study.modified_energy import ModifiedEnergy, modified_energy
from livens.analysis.study.optimisation import Optimum, optimise
from livens.analysis.study.order import Fit, fit_order
from livens.analysis.study.stability import Lyapunov, PeriodicOrbit, lyapunov, periodic_orbit
from livens.analysis.study.sweep import Sweep, sweep
from livens.analysis.study.table import write_table
from livens.analysis.study.uncertainty import Uncertainty, uncertainty

__all__ = [
    "Comparison",
    "Convergence",
    "Fit",
    "Lyapunov",
    "ModifiedEnergy",
    "Optimum",
    "ParameterFit",
    "PeriodicOrbit",
    "Sweep",
    "Uncertainty",
    "compare",
    "converge",
    "fit",
    "fit_order",
    "lyapunov",
    "modified_energy",
    "optimise",
    "periodic_orbit",
    "reversibility_defect",
    "sweep",
    "symplecticity_defect",
    "to_accuracy",
    "uncertainty",
    "work_precision",
    "write_table",
]
