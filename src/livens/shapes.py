"""Shapes: the visuals of the parts of a model, whose positions depend on the coordinates.

Public module of `livens.scene.shapes`.
"""

from livens.scene.shapes import *
from livens.scene.shapes import __all__ as __all__
