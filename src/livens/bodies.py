"""Rigid-body elements of a system: bodies, point constraints, force elements and loads.

Public module of `livens.multibody`.
"""

from livens.multibody import *
from livens.multibody import __all__ as __all__
