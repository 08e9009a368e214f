"""Port-Hamiltonian systems of differential-algebraic equations, whose structure contains the power balance.

    E(t, x) x' + r(t, x) = (J - R) z + (B - P) u,      y = (B + P)^T z + (S - N) u        (Symank 2025, def. 4.1)

`PortHamiltonian` is the model. `interconnect` couples two models by relations between their ports, `interconnect_all`
any number by the names of the ports. `DiracStructure` has the flows and efforts, `transform` and `block_form` change
the variables. `from_system` converts a mechanical system, `autonomous` makes time a state, and
`check_initial_state` checks initial values. `livens.models.port_hamiltonian.examples` has example models.
"""

from __future__ import annotations

from livens.models.port_hamiltonian.conversion import from_system, state_from_system
from livens.models.port_hamiltonian.dirac import DiracStructure, FlowsAndEfforts
from livens.models.port_hamiltonian.initialization import check_initial_state
from livens.models.port_hamiltonian.interconnection import interconnect
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.port_hamiltonian.network import interconnect_all
from livens.models.port_hamiltonian.time_as_state import autonomous
from livens.models.port_hamiltonian.transformation import block_form, transform

__all__ = [
    "DiracStructure",
    "FlowsAndEfforts",
    "PortHamiltonian",
    "autonomous",
    "block_form",
    "check_initial_state",
    "from_system",
    "interconnect",
    "interconnect_all",
    "state_from_system",
    "transform",
]
