"""External forces: compiled functions, known to the model only by their address."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.errors import InputError, explain_call_errors

_DOUBLES = ctypes.POINTER(ctypes.c_double)
_PROTOTYPE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)
#: Relative increment of forward differences: the square root of the machine epsilon.
DIFFERENCE_INCREMENT = 2.0**-26
#: Size of the first page of memory, which contains no functions.
_FIRST_PAGE = 4096


@explain_call_errors
class ExternalForce:
    """External force, evaluated by compiled code: a Numba `cfunc`, a `ctypes` function, or the address of a C function.

    The function is called as ``void f(const double *q, const double *v, const double *t, const double *k, double
    *force)`` with the coordinates, their time derivatives, the time (one number), the parameter vector, and an output
    array with one entry per coordinate. It must be deterministic and must not raise: exceptions cannot cross the C
    boundary.

    `semi-explicit:<alpha>,<beta>` and `semi-explicit-2:<beta>` evaluate it once per step, explicitly (Modin 2009, paper
    V and sect. 4.2). `lie-em`, `lie-ggl`, `livens-em` and `livens-midpoint` evaluate it at the midpoint, in every
    Newton iteration. Its Jacobian is given, or computed by forward differences, with one call per coordinate and
    velocity.

    Parameters
    ----------
    function : cfunc, ctypes function or int
        Compiled function, or its address.
    depends_on_velocity : bool, default True
        Whether the force depends on v. Error-controlled steps are longer if it does not.
    jacobian : cfunc, ctypes function or int, optional
        Compiled Jacobian for implicit schemes, called like `function`. Its output array has n rows of 2 n entries: the
        derivatives of one force with respect to q, then to v. It contains zeros before the call. Default: forward
        differences with increments of ``1.5e-8 max(1, |x|)``.

    Raises
    ------
    InputError
        If `function` or `jacobian` is not a compiled function.

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

    #: Whether the force may be evaluated within a step; contacts are detected between steps only.
    evaluates_within_steps = True

    def __init__(self, function: Any, *, depends_on_velocity: bool = True, jacobian: object = None) -> None:
        self.address = _function_pointer(function)
        #: Address of the compiled Jacobian; 0 for difference quotients.
        self.jacobian_address = 0 if jacobian is None else _function_pointer(jacobian)
        #: Owners of the addresses, kept alive with this object.
        self.function, self.jacobian_function = function, jacobian
        #: Whether the force may depend on velocities.
        self.depends_on_velocity = depends_on_velocity
        self._function = _PROTOTYPE(self.address)
        #: Numbers of evaluations of the force and of its given Jacobian; compiled implicit steps increment them, too.
        self.counts = np.zeros(2, dtype=np.int64)

    def fingerprint_data(self) -> Sequence[object]:
        """Return the data of the fingerprint: everything the step equations depend on.

        Returns
        -------
        tuple
            Address of the compiled function, whether the force depends on velocities, and address of a given Jacobian.
        """
        jacobian = (self.jacobian_address,) if self.jacobian_address else ()
        return self.address, self.depends_on_velocity, *jacobian

    def __call__(self, q: Any, v: Any, t: float, k: Any) -> np.ndarray:
        """Return the force in a state, of shape (n,)."""
        arguments = [np.ascontiguousarray(part, dtype=float).ravel() for part in (q, v, [t], k)]
        force = np.zeros(arguments[0].size)
        self._function(*(part.ctypes.data for part in (*arguments, force)))
        self.counts[0] += 1
        return force

    def jacobian(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
        """Return the Jacobian with respect to q and v, given or by forward differences.

        Parameters
        ----------
        q, v : array of shape (n,)
            Coordinates and velocities.
        t : float
            Time in seconds.
        k : array
            Parameter vector of the model.

        Returns
        -------
        ndarray of shape (n, 2 n)
            Derivatives of the forces with respect to q, then to v.
        """
        n, state = len(q), np.concatenate([q, v])
        result = np.zeros((n, 2 * n))
        if self.jacobian_address:
            arguments = [np.ascontiguousarray(part, dtype=float) for part in (q, v, [t], k)]
            _PROTOTYPE(self.jacobian_address)(*(part.ctypes.data for part in (*arguments, result)))
            self.counts[1] += 1
            return result
        force = self(q, v, t, k)
        for j in range(2 * n if self.depends_on_velocity else n):
            shifted = state.copy()
            shifted[j] += DIFFERENCE_INCREMENT * max(1.0, abs(state[j]))
            result[:, j] = (self(shifted[:n], shifted[n:], t, k) - force) / (shifted[j] - state[j])
        return result

    def __repr__(self) -> str:
        return f"<livens.ExternalForce at {self.address:#x}>"


def require_force_expressions(model: object, caller: str) -> None:
    """Raise `InputError` if a model has a compiled force, whose expression a computation would need."""
    force = getattr(model, "external_force", None)
    if force is not None and force.evaluates_within_steps:
        raise InputError(f"{caller} needs forces as expressions, and the model has an external (compiled) force")


def _function_pointer(function: Any) -> int:
    if isinstance(function, (int, np.integer)) and not isinstance(function, bool) and _FIRST_PAGE <= function < 2**63:
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
