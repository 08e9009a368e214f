"""Time-stepping schemes: registry, look-up by name (`get`), and composition.

>>> from livens import schemes
>>> em = schemes.get("livens-em")
>>> em.order, em.symmetric, em.symplectic
(2, True, False)
"""

from __future__ import annotations

from livens.errors import answer_with_words
from livens.schemes.base import Scheme, Traits
from livens.schemes.recipes.composition import compose
from livens.schemes.registry import aliases, all, fitting, get, names, require

__all__ = ["Scheme", "Traits", "aliases", "all", "compose", "fitting", "get", "names", "require"]

answer_with_words(globals(), __all__)
