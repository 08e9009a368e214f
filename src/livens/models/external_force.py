"""External forces: compiled functions, known to the model only by their address."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.errors import InputError

_DOUBLES = ctypes.POINTER(ctypes.c_double)
_PROTOTYPE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)


class ExternalForce:
    """External force, evaluated by compiled code: a Numba `cfunc`, a `ctypes` function, or the address of a C function.

    The function is called as ``void f(const double *q, const double *v, const double *t, const double *k, double
    *force)`` with the coordinates, their time derivatives, the time (one number), the parameter vector, and an output
    array with one entry per coordinate. It must be deterministic and must not raise: exceptions cannot cross the C
    boundary.

    Only schemes that evaluate expensive forces once per step without derivatives accept it:
    `semi-explicit:<alpha>,<beta>` and `semi-explicit-2:<beta>` (Modin 2009, paper V and sect. 4.2).

    Parameters
    ----------
    function : cfunc, ctypes function or int
        Compiled function, or its address.
    depends_on_velocity : bool, default True
        Whether the force depends on v. Error-controlled steps are longer if it does not.

    Raises
    ------
    InputError
        If `function` is not a compiled function.

    Examples
    --------
    >>> import ctypes, livens as lv
    >>> doubles = ctypes.POINTER(ctypes.c_double)
    >>> @ctypes.CFUNCTYPE(None, doubles, doubles, doubles, doubles, doubles)
    ... def spring(q, v, t, k, force):
    ...     force[0] = -k[0] * q[0]
    >>> model = lv.Hamiltonian(
    ...     "x", kinetic=lambda p: p[0] ** 2 / 2, forces=lv.Force(lv.ExternalForce(spring), expensive=True),
    ...     parameters=dict(stiffness=4.0),
    ... )
    >>> run = lv.simulate(model, q0=[1.0], p0=[0.0], scheme="semi-explicit:0.5,0.5", h=0.001, t_end=1.0)
    >>> round(float(run.q[-1, 0]), 5), run.statistics.force_evaluations  # cos 2
    (-0.41615, 1001)
    """

    #: Number of outputs after the forces: powers and energies of the energy balance.
    n_energy_terms = 0

    def __init__(self, function: Any, *, depends_on_velocity: bool = True) -> None:
        self.address = _function_pointer(function)
        #: Owner of the address, kept alive with this object.
        self.function = function
        #: Whether the force may depend on velocities.
        self.depends_on_velocity = depends_on_velocity
        self._function = _PROTOTYPE(self.address)

    def fingerprint_data(self) -> Sequence[Any]:
        """Return the data of the fingerprint: everything the step equations depend on.

        Returns
        -------
        tuple
            Address of the compiled function, and whether the force depends on velocities.
        """
        return self.address, self.depends_on_velocity

    def __call__(self, q: Any, v: Any, t: float, k: Any) -> np.ndarray:
        """Return the force in a state, of shape (n,)."""
        arguments = [np.ascontiguousarray(part, dtype=float).ravel() for part in (q, v, [t], k)]
        force = np.zeros(arguments[0].size)
        self._function(*(part.ctypes.data for part in (*arguments, force)))
        return force

    def __repr__(self) -> str:
        return f"<livens.ExternalForce at {self.address:#x}>"


def _function_pointer(function: Any) -> int:
    if isinstance(function, (int, np.integer)) and not isinstance(function, bool) and 0 < function < 2**63:
        return int(function)
    if isinstance(getattr(function, "address", None), int):  # a Numba cfunc
        return int(function.address)
    address = None
    if type(function).__module__.startswith("ctypes") or hasattr(function, "argtypes"):
        address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise InputError(
            f"an external force is a ctypes function, a Numba cfunc or the address of a function, got {function!r}"
        )
    return int(address)
