"""Normal force laws of compliant contacts."""

from livens.multibody.contacts.laws.base import Law
from livens.multibody.contacts.laws.hertz import Hertz
from livens.multibody.contacts.laws.linear import Linear
from livens.multibody.contacts.laws.material import Material, hertz_stiffness
from livens.multibody.contacts.laws.own import Own

__all__ = ["Hertz", "Law", "Linear", "Material", "Own", "hertz_stiffness"]
