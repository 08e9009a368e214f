"""Butcher tableaus of Runge-Kutta methods, for any number of stages.

Public module of `livens.schemes.tableaus`.
"""

from livens.schemes.tableaus import *
from livens.schemes.tableaus import __all__ as __all__
