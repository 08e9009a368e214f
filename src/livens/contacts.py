"""Compliant contact of bodies: collision shapes, normal force laws and friction.

Public module of `livens.multibody.contacts`.
"""

from livens.multibody.contacts import *
from livens.multibody.contacts import __all__ as __all__
