"""Symmetry generators: if ``q -> q + a xi(q)`` leaves L invariant, ``p . xi(q)`` is conserved (Noether).

Public module of `livens.models.symmetry`.
"""

from livens.models.symmetry import *
from livens.models.symmetry import __all__ as __all__
