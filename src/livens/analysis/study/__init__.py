"""Studies: convergence, comparison, sweeps, fitting, optimisation, stability and structure defects of schemes.

>>> import livens as lv
>>> study = lv.study.converge(lv.problems.load("simple-pendulum"), "livens-em,livens-midpoint", t_end=1.0)
>>> [round(curve.fits["q"].order, 1) for curve in study.curves]
[2.0, 2.0]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from livens.analysis.study.accuracy import to_accuracy
    from livens.analysis.study.backward_error import ModifiedEnergy, modified_energy
    from livens.analysis.study.comparison import Comparison, compare
    from livens.analysis.study.convergence import Convergence, converge, work_precision
    from livens.analysis.study.fitting import ParameterFit, fit
    from livens.analysis.study.modified_equation import ModifiedEquation, modified_equation
    from livens.analysis.study.modified_hamiltonian import (
        ModifiedHamiltonian,
        modified_hamiltonian,
        modified_matrix,
    )
    from livens.analysis.study.monte_carlo import Uncertainty, uncertainty
    from livens.analysis.study.optimisation import Optimum, optimise
    from livens.analysis.study.order import Fit, fit_order
    from livens.analysis.study.stability import Lyapunov, PeriodicOrbit, lyapunov, periodic_orbit
    from livens.analysis.study.stable_steps import LongestStep, longest_step
    from livens.analysis.study.structure_defects import (
        poisson_defect,
        reversibility_defect,
        symplecticity_defect,
    )
    from livens.analysis.study.sweeps import Sweep, sweep
    from livens.analysis.study.table_files import write_table
    from livens.analysis.study.truncated_newton import TruncatedNewtonRun, truncated_newton

#: Modules of the public names, imported on first access.
_MODULES = {
    "Comparison": "comparison",
    "Convergence": "convergence",
    "Fit": "order",
    "LongestStep": "stable_steps",
    "Lyapunov": "stability",
    "ModifiedEnergy": "backward_error",
    "ModifiedEquation": "modified_equation",
    "ModifiedHamiltonian": "modified_hamiltonian",
    "Optimum": "optimisation",
    "ParameterFit": "fitting",
    "PeriodicOrbit": "stability",
    "Sweep": "sweeps",
    "TruncatedNewtonRun": "truncated_newton",
    "Uncertainty": "monte_carlo",
    "compare": "comparison",
    "converge": "convergence",
    "fit": "fitting",
    "fit_order": "order",
    "longest_step": "stable_steps",
    "lyapunov": "stability",
    "modified_energy": "backward_error",
    "modified_equation": "modified_equation",
    "modified_hamiltonian": "modified_hamiltonian",
    "modified_matrix": "modified_hamiltonian",
    "optimise": "optimisation",
    "periodic_orbit": "stability",
    "poisson_defect": "structure_defects",
    "reversibility_defect": "structure_defects",
    "sweep": "sweeps",
    "symplecticity_defect": "structure_defects",
    "to_accuracy": "accuracy",
    "truncated_newton": "truncated_newton",
    "uncertainty": "monte_carlo",
    "work_precision": "convergence",
    "write_table": "table_files",
}

__all__ = [
    "Comparison",
    "Convergence",
    "Fit",
    "LongestStep",
    "Lyapunov",
    "ModifiedEnergy",
    "ModifiedEquation",
    "ModifiedHamiltonian",
    "Optimum",
    "ParameterFit",
    "PeriodicOrbit",
    "Sweep",
    "TruncatedNewtonRun",
    "Uncertainty",
    "compare",
    "converge",
    "fit",
    "fit_order",
    "longest_step",
    "lyapunov",
    "modified_energy",
    "modified_equation",
    "modified_hamiltonian",
    "modified_matrix",
    "optimise",
    "periodic_orbit",
    "poisson_defect",
    "reversibility_defect",
    "sweep",
    "symplecticity_defect",
    "to_accuracy",
    "truncated_newton",
    "uncertainty",
    "work_precision",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
