"""Studies: convergence, comparison, sweeps, fitting, optimisation, stability and structure defects of schemes.

Public module of `livens.analysis.study`, which imports its names on first use.
"""

from typing import TYPE_CHECKING

from livens.analysis.study import __all__ as __all__
from livens.analysis.study import __getattr__ as __getattr__

if TYPE_CHECKING:
    from livens.analysis.study import *
