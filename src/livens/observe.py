"""Observables of a run, computed from its stored states in blocks of rows.

Public module of `livens.analysis.observables`.
"""

from livens.analysis.observables import *
from livens.analysis.observables import __all__ as __all__
