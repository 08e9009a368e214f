"""Port-Hamiltonian systems of differential-algebraic equations, whose structure contains the power balance.

Public module of `livens.models.port_hamiltonian`.
"""

from livens.models.port_hamiltonian import *
from livens.models.port_hamiltonian import __all__ as __all__
from livens.models.port_hamiltonian import examples as examples
