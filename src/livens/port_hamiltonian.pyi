from livens.models.port_hamiltonian import *
