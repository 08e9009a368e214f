"""Port-Hamiltonian systems of differential-algebraic equations, whose structure contains the power balance.

    E(t, x) x' + r(t, x) = (J - R) z + (B - P) u,      y = (B + P)^T z + (S - N) u        (S002 def. 4.1)

`PortHamiltonian` is the model. `interconnect` couples two models by relations between their ports, `interconnect_all`
any number by the names of the ports. `from_system` converts a mechanical system, `autonomous` makes time a state, and
`check_initial_state` checks initial values. `livens.port_hamiltonian.examples` has example models.
"""

from __future__ import annotations

from livens.models.port_hamiltonian.autonomy import autonomous
from livens.models.port_hamiltonian.interconnection import interconnect
from livens.models.port_hamiltonian.mechanics import from_mechanics, mechanical_state
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.port_hamiltonian.network import network
from livens.models.port_hamiltonian.start import start_values

__all__ = [
    "PortHamiltonian",
    "autonomous",
    "from_mechanics",
    "interconnect",
    "mechanical_state",
    "network",
    "start_values",
]
