"""Example port-Hamiltonian models with consistent initial states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.port_hamiltonian.conversion import from_system, state_from_system
from livens.models.port_hamiltonian.interconnection import interconnect
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.system import System


class Example(NamedTuple):
    """Model and consistent initial state."""

    model: PortHamiltonian
    x0: np.ndarray


def pendulum(
    airflow: str = "port",
    mass: float = 1.0,
    length: float = 1.0,
    g: float = 9.81,
    kappa: float = 0.1,
    alpha: float = 2.0,
) -> Example:
    """Return the pendulum of Symank 2025, 4.4.2 with viscosity kappa and an airflow force ``alpha m`` along x.

    The airflow is an input ("port") or part of the Hamiltonian ("potential"): the same motion with two power balances.
    The last row of the structure matrix is ``[0, G, 0]`` (Symank 2025 has ``[G, 0, 0]``, which is not skew-symmetric).

    >>> pendulum().model, pendulum("potential").model.ports
    (<livens.PortHamiltonian: states x y v_x v_y lam, ports f_x f_y>, ())
    """
    if airflow not in ("port", "potential"):
        raise InputError(f"airflow must be 'port' or 'potential', got {airflow!r}")
    port = airflow == "port"
    model = PortHamiltonian(
        "x y v_x v_y lam",
        H=lambda x, k: (
            0.5 * k.m * (x[2] ** 2 + x[3] ** 2)
            + k.m * k.g * (x[1] + k.l)
            + (0 if port else k.alpha * k.m * (k.l - x[0]))
        ),
        z=lambda x, k: [0 if port else -k.alpha * k.m, k.m * k.g, x[2], x[3], x[4]],
        E=lambda k: np.diag([1, 1, k.m, k.m, 0]),
        J=lambda x: [
            [0, 0, 1, 0, 0],
            [0, 0, 0, 1, 0],
            [-1, 0, 0, 0, -x[0]],
            [0, -1, 0, 0, -x[1]],
            [0, 0, x[0], x[1], 0],
        ],
        R=lambda k: np.diag([0, 0, k.kappa, k.kappa, 0]),
        B=np.eye(5)[:, 2:4] if port else None,
        u=(lambda k: [k.alpha * k.m, 0]) if port else None,
        ports="f_x f_y" if port else None,
        parameters=dict(m=mass, l=length, g=g, kappa=kappa, alpha=alpha),
    )
    # released at (l, 0): the rod force balances the airflow
    return Example(model, np.array([length, 0.0, 0.0, 0.0, mass * alpha / length]))


def mass_spring_damper(
    masses: Sequence[float] = (1.0, 1.0),
    springs: Sequence[float] = (1.0, 1.0, 1.0),
    rest_lengths: Sequence[float] = (10.0, 10.0, 10.0),
    damping: Sequence[float] = (0.2, 0.5),
    alpha: float = 3.0,
    initial_positions: Sequence[float] = (6.0, 24.0),
) -> Example:
    """Return a chain of masses between two walls with a constant force alpha on the first mass (Symank 2025, 7.2).

    For n masses there are n + 1 springs. The distance of the walls is the sum of the rest lengths. Each mass is damped
    against the ground. Masses may be zero.

    >>> mass_spring_damper().model
    <livens.PortHamiltonian: states p_1 p_2 v_1 v_2, port force>
    """
    n = len(masses)
    for name, values, count in (
        ("damping", damping, n),
        ("start", initial_positions, n),
        ("springs", springs, n + 1),
        ("rest", rest_lengths, n + 1),
    ):
        if len(values) != count:
            raise InputError(f"{name} must have {count} entries for {n} masses, got {len(values)}")

    def elongation(x: np.ndarray, k: object) -> np.ndarray:
        positions = np.concatenate([[0.0], x[:n], [m.array(k.r).sum()]])  # type: ignore[attr-defined]
        return np.asarray(positions[1:] - positions[:-1] - k.r)  # type: ignore[attr-defined]

    model = PortHamiltonian(
        [f"p_{i + 1}" for i in range(n)] + [f"v_{i + 1}" for i in range(n)],
        H=lambda x, k: 0.5 * (k.m @ x[n:] ** 2) + 0.5 * (k.k @ elongation(x, k) ** 2),
        z=lambda x, k: np.concatenate([-np.diff(k.k * elongation(x, k)), x[n:]]),
        E=lambda k: np.diag([*np.ones(n), *k.m]),
        J=np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]]),
        R=lambda k: np.diag([*np.zeros(n), *k.d]),
        B=np.eye(2 * n)[:, n : n + 1],
        u=lambda k: [k.alpha],
        ports="force",
        parameters=dict(m=masses, k=springs, r=rest_lengths, d=damping, alpha=alpha),
    )
    return Example(model, np.array([*initial_positions, *np.zeros(n)], dtype=float))


def circuit(
    L: float = 2.0,
    C: tuple[float, float] = (0.01, 0.02),
    R_L: float = 0.1,
    R_G: float = 3.0,
    R_R: float = 3.0,
    voltage: float = 1.0,
) -> Example:
    """Return a generator, a transmission line and a load by Kirchhoff's laws, with two algebraic equations.

    A line with inductance L and resistance R_L joins two nodes with capacitors C to the ground; a generator with inner
    resistance R_G feeds the first, a resistor R_R loads the second. States are the current of the line, the voltages
    of the nodes, the currents of generator and load; E = diag(L, C1, C2, 0, 0).

    >>> circuit().model
    <livens.PortHamiltonian: states I V_1 V_2 I_G I_R, port voltage>
    """
    model = PortHamiltonian(
        "I V_1 V_2 I_G I_R",
        H=lambda x, k: 0.5 * (k.L * x[0] ** 2 + k.C @ x[1:3] ** 2),
        z=lambda x: x,
        E=lambda k: np.diag([k.L, *k.C, 0, 0]),
        J=[
            [0, 1, -1, 0, 0],
            [-1, 0, 0, 1, 0],
            [1, 0, 0, 0, -1],
            [0, -1, 0, 0, 0],
            [0, 0, 1, 0, 0],
        ],
        R=lambda k: np.diag([k.R_L, 0, 0, k.R_G, k.R_R]),
        B=[[0], [0], [0], [1], [0]],
        u=lambda k: [k.voltage],
        ports="voltage",
        parameters=dict(L=L, C=C, R_L=R_L, R_G=R_G, R_R=R_R, voltage=voltage),
    )
    return Example(model, np.array([0.0, 0.0, 0.0, voltage / R_G, 0.0]))


def armature(L: float = 0.05, R: float = 0.5) -> PortHamiltonian:
    """Return a coil: inductance and resistance in series, with ports for the supply and the induced voltage.

    >>> armature()
    <livens.PortHamiltonian: states i, ports voltage emf>
    """
    return PortHamiltonian(
        "i",
        H=lambda x, k: 0.5 * k.L * x[0] ** 2,
        z=lambda x: x,
        E=lambda k: [[k.L]],
        R=lambda k: [[k.R]],
        B=[[1, 1]],
        ports="voltage emf",
        parameters=dict(L=L, R=R),
    )


def _motor(coil: PortHamiltonian, mechanism: PortHamiltonian, motor_constant: float) -> PortHamiltonian:
    """Return coil and mechanism as a motor: force ``motor_constant * i``, voltage ``-motor_constant * velocity``."""
    return interconnect(
        coil,
        mechanism,
        M=[[0, 0, motor_constant], [0, -motor_constant, 0]],
        N=[[0, 1, 0], [0, 0, 1]],
    )


def motor_slider_crank(
    motor_constant: float = 0.3, voltage: float = 2.0, L: float = 0.05, R: float = 0.5, friction: float = 0.05
) -> Example:
    """Return a DC motor on the crank of a slider-crank mechanism: a circuit, a gyrator and constraints.

    phi is the crank angle, psi the rod angle, x the slider position; two constraints close the loop.

    >>> motor_slider_crank().model
    <livens.PortHamiltonian: states i phi psi x v_phi v_psi v_x lam_0 lam_1, port voltage>
    """
    mechanism = System(
        "phi psi x",
        kinetic=lambda v, k: 0.5 * (k.J_crank * v[0] ** 2 + k.J_rod * v[1] ** 2 + k.m * v[2] ** 2),
        constraints=lambda q, k: [
            k.a * m.cos(q[0]) + k.b * m.cos(q[1]) - q[2],
            k.a * m.sin(q[0]) + k.b * m.sin(q[1]),
        ],
        dissipation=lambda v, k: 0.5 * k.friction * v[2] ** 2,
        parameters=dict(J_crank=0.02, J_rod=0.01, m=0.5, a=0.2, b=0.6, friction=friction),
    )
    system = _motor(armature(L, R), from_system(mechanism, inputs="phi"), motor_constant)
    initial_state = state_from_system(mechanism, [0.0, 0.0, 0.8], [0.0, 0.0, 0.0])
    return Example(system.with_input([voltage]), np.concatenate([[0.0], initial_state]))


def loudspeaker(motor_constant: float = 5.0, amplitude: float = 1.0, frequency: float = 50.0) -> Example:
    """Return a voice coil with a membrane on a hardening spring, driven by an alternating voltage.

    >>> loudspeaker().model
    <livens.PortHamiltonian: states i x v_x, port voltage>
    """
    membrane = System(
        "x",
        kinetic=lambda v, k: 0.5 * k.m * v[0] ** 2,
        potential=lambda q, k: 0.5 * k.c * q[0] ** 2 + 0.25 * k.c3 * q[0] ** 4,
        dissipation=lambda v, k: 0.5 * k.d * v[0] ** 2,
        parameters=dict(m=0.01, c=1000.0, c3=1e7, d=1.0),
    )
    system = _motor(armature(0.5e-3, 6.0), from_system(membrane, inputs="x"), motor_constant)
    omega = 2 * m.pi * frequency
    return Example(system.with_input(lambda t: [amplitude * m.sin(omega * t)]), np.zeros(3))
