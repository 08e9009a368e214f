"""Port-Hamiltonian systems of differential-algebraic equations: models whose power balance is part of their form.

    E(t, x) x' + r(t, x) = (J - R) z + (B - P) u,      y = (B + P)^T z + (S - N) u        (S002 def. 4.1)

`PortHamiltonian` reads and checks one, `interconnect` joins two by relations between their ports, `network` any number
by the names of these, `from_mechanics` writes a mechanical system as one, `autonomous` makes time a state,
`start_values` checks where a run may start. `livens.port_hamiltonian.examples` has ready models.
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
