"""Scaling functions ``dt/dtau = g`` of time-transformed schemes: step size in time per unit of fictive time tau.

Public module of `livens.schemes.scaling`.
"""

from livens.schemes.scaling import *
from livens.schemes.scaling import __all__ as __all__
