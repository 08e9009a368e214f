"""Time-stepping schemes: registry, look-up by name (`get`), and composition.

>>> from livens import schemes
>>> em = schemes.get("livens-em")
>>> em.order, em.symmetric, em.symplectic
(2, True, False)
"""

from __future__ import annotations

from livens.schemes.core.registry import aliases, all, check_compatible, compatible, get, names
from livens.schemes.core.scheme import Scheme, Traits
from livens.schemes.runge_kutta.families import runge_kutta
from livens.schemes.splitting.composition import compose
from livens.schemes.splitting.user_flows import flow_splitting
from livens.schemes.time_transformed.sundman_flows import sundman_splitting

__all__ = [
    "Scheme",
    "Traits",
    "aliases",
    "all",
    "check_compatible",
    "compatible",
    "compose",
    "flow_splitting",
    "get",
    "names",
    "runge_kutta",
    "sundman_splitting",
]
