"""Normal force laws of compliant contacts."""

from livens.multibody.contacts.normal_laws.base import NormalLaw
from livens.multibody.contacts.normal_laws.custom import CustomLaw
from livens.multibody.contacts.normal_laws.hertz import Hertz
from livens.multibody.contacts.normal_laws.linear import Linear
from livens.multibody.contacts.normal_laws.material import ElasticMaterial, hertz_stiffness

__all__ = ["CustomLaw", "ElasticMaterial", "Hertz", "Linear", "NormalLaw", "hertz_stiffness"]
