from livens.models.symmetry import *
