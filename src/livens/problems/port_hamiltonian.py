"""Built-in port-Hamiltonian problems: the examples of `livens.port_hamiltonian` with step size and end time."""

from __future__ import annotations

import numpy as np

from livens.expressions.tracing import ModelFunction
from livens.models.port_hamiltonian import examples
from livens.models.port_hamiltonian.examples import Example
from livens.models.problem import Problem
from livens.problems import port_hamiltonian_visuals, problem
from livens.problems.mass_spring_damper import mass_spring_damper
from livens.problems.reference_solution import Reference


def _problem(
    name: str,
    example: Example,
    visual: ModelFunction,
    h: float,
    t_end: float,
    reference: Reference | None = None,
    scheme: str = "gauss-2",
) -> Problem:
    example.model.visual = visual
    initial = {"x0": example.x0}
    return Problem(name, example.model, None, None, scheme, h, t_end, reference=reference, initial_values=initial)


@problem(
    "viscous-pendulum",
    summary="pendulum in a viscous airflow, as a port-Hamiltonian system of index 2",
    source="Symank 2025, 4.4.2",
    scheme="gauss-3",
)
def viscous_pendulum(
    m: float = 1.0,
    l: float = 1.0,  # noqa: E741
    g: float = 9.81,
    kappa: float = 0.1,
    alpha: float = 2.0,
    potential: int = 0,
) -> Problem:
    """Build the pendulum with viscosity `kappa` in an airflow with the force ``alpha m`` along x.

    The airflow is an input or, with ``potential=1``, a term of the Hamiltonian: same motion, different power balances.
    """
    example = examples.pendulum("potential" if potential else "port", m, l, g, kappa, alpha)
    # with an even number of stages s, index-2 multipliers only have order s - 1
    return _problem("viscous-pendulum", example, port_hamiltonian_visuals.pendulum, 0.01, 10.0, scheme="gauss-3")


@problem(
    "spring-chain",
    summary="two masses on three springs with dampers and a constant force, as a port-Hamiltonian system",
    source="Symank 2025, 7.2.2",
    source_run="GLC and LIIIC",
    scheme="gauss-2",
)
def spring_chain(
    m: tuple[float, float] = (1.0, 1.0),
    d: tuple[float, float] = (0.2, 0.5),
    alpha: float = 3.0,
    k: tuple[float, float, float] = (1.0, 1.0, 1.0),
    r: tuple[float, float, float] = (10.0, 10.0, 10.0),
    p0: tuple[float, float] = (6.0, 24.0),
) -> Problem:
    """Build `mass-spring-damper` with dampers `d` and the force `alpha` as an input, released at rest from `p0`."""
    example = examples.mass_spring_damper(m, k, r, d, alpha, p0)
    exact = mass_spring_damper(*m, *d, alpha, k, r, p0).reference

    def reference(t: float) -> dict[str, np.ndarray]:
        assert exact is not None
        exact_state = exact(t)
        return {"x": np.concatenate([exact_state["q"], exact_state["v"]])}

    return _problem(
        "spring-chain",
        example,
        port_hamiltonian_visuals.spring_chain,
        0.1,
        60.0,
        reference if exact is not None else None,
    )


@problem(
    "rlc-circuit",
    summary="generator, line and load by Kirchhoff's laws: three differential equations, two algebraic",
    source="Symank 2025, sect. 4, an electrical circuit",
    scheme="gauss-2",
)
def rlc_circuit(
    L: float = 2.0,
    C: tuple[float, float] = (0.01, 0.02),
    R_L: float = 0.1,
    R_G: float = 3.0,
    R_R: float = 3.0,
    voltage: float = 1.0,
) -> Problem:
    """Build the circuit: line (L, R_L), capacitors C at its ends, resistances of generator and load.

    The constant `voltage` is switched on at t = 0 with all charges zero.
    """
    return _problem(
        "rlc-circuit", examples.circuit(L, C, R_L, R_G, R_R, voltage), port_hamiltonian_visuals.circuit, 0.005, 5.0
    )


@problem(
    "motor-slider-crank",
    summary="DC motor on a slider-crank mechanism: circuit and constrained mechanism in one system",
    source="Symank 2025, 4.2.4, an interconnection",
    scheme="gauss-3",
)
def motor_slider_crank(
    constant: float = 0.3, voltage: float = 2.0, L: float = 0.05, R: float = 0.5, friction: float = 0.05
) -> Problem:
    """Build the problem from rest; `constant` is the motor constant (torque per current, voltage per angular speed)."""
    example = examples.motor_slider_crank(constant, voltage, L, R, friction)
    return _problem("motor-slider-crank", example, port_hamiltonian_visuals.slider_crank, 0.01, 10.0, scheme="gauss-3")


@problem(
    "loudspeaker",
    summary="voice coil on a membrane with hardening stiffness, alternating voltage",
    source="Symank 2025, 4.2.4, an interconnection",
    scheme="gauss-2",
)
def loudspeaker(constant: float = 5.0, amplitude: float = 1.0, frequency: float = 50.0) -> Problem:
    """Build the problem from rest; the Hamiltonian is of fourth degree in the displacement."""
    example = examples.loudspeaker(constant, amplitude, frequency)
    return _problem("loudspeaker", example, port_hamiltonian_visuals.loudspeaker, 2e-4, 0.2)
