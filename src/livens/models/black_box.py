"""Forces that are compiled elsewhere: the address of a function, and nothing else is known of it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.errors import InputError

_DOUBLES = ctypes.POINTER(ctypes.c_double)
_PROTOTYPE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)


class BlackBox:
    """A force as native code: a Numba `cfunc`, a function of `ctypes`, or the address of one in C.

    It is called as ``void f(const double *q, const double *v, const double *t, const double *k, double *force)`` with
    the coordinates, their rates, the time (one number), the model's parameters one after the other, and room for one
    number per coordinate. Only schemes that evaluate expensive forces once in every step and never differentiate them
    can use it: `semi-explicit:<alpha>,<beta>` and `semi-explicit-2:<beta>` (S003 paper V and sect. 4.2). The function
    must give the same force for the same arguments, and must not raise: nobody could catch that. If the force does not
    depend on v, say ``velocities=False``: with a tolerance steps are then longer.

    >>> import ctypes, livens as lv
    >>> doubles = ctypes.POINTER(ctypes.c_double)
    >>> @ctypes.CFUNCTYPE(None, doubles, doubles, doubles, doubles, doubles)
    ... def spring(q, v, t, k, force):
    ...     force[0] = -k[0] * q[0]
    >>> model = lv.Hamiltonian(
    ...     "x", kinetic=lambda p: p[0] ** 2 / 2, forces=lv.Force(lv.BlackBox(spring), expensive=True),
    ...     parameters=dict(stiffness=4.0),
    ... )
    >>> run = lv.simulate(model, q0=[1.0], p0=[0.0], scheme="semi-explicit:0.5,0.5", h=0.001, t_end=1.0)
    >>> round(float(run.q[-1, 0]), 5), run.statistics.force_evaluations  # cos 2
    (-0.41615, 1001)
    """

    #: How many numbers follow the forces: powers and energies that a model keeps accounts of.
    accounts = 0

    def __init__(self, function: Any, *, velocities: bool = True) -> None:
        self.address = _address(function)
        #: What the address belongs to: it must not be freed as long as this lives.
        self.function = function
        #: Whether the force may depend on velocities.
        self.velocities = velocities
        self._call = _PROTOTYPE(self.address)

    def content(self) -> Sequence[Any]:
        """What the equations of a step depend on."""
        return self.address, self.velocities

    def __call__(self, q: Any, v: Any, t: float, k: Any) -> np.ndarray:
        """The force in a state."""
        given = [np.ascontiguousarray(part, dtype=float).ravel() for part in (q, v, [t], k)]
        force = np.zeros(given[0].size)
        self._call(*(part.ctypes.data for part in (*given, force)))
        return force

    def __repr__(self) -> str:
        return f"<livens.BlackBox at {self.address:#x}>"


def _address(function: Any) -> int:
    if isinstance(function, (int, np.integer)) and not isinstance(function, bool) and 0 < function < 2**63:
        return int(function)
    if isinstance(getattr(function, "address", None), int):  # a Numba cfunc
        return int(function.address)
    found = None
    if type(function).__module__.startswith("ctypes") or hasattr(function, "argtypes"):
        found = ctypes.cast(function, ctypes.c_void_p).value
    if not found:
        raise InputError(
            f"a black box is the address of a compiled function, a ctypes function, or a Numba cfunc, got {function!r}"
        )
    return int(found)
