"""Late binding of methods and properties: attributes that later layers attach to a class, imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from livens.errors import suggestion


class LateAttributesType(type):
    """Metaclass of `LateAttributes`: binds attributes of the class itself, as in ``help(lv.Multibody.simulate)``."""

    def __getattr__(cls, name: str) -> Any:
        modules = {} if name == "_late_attributes" else cls._late_attributes()
        if name not in modules or name in vars(cls):
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'", name=name, obj=cls)
        importlib.import_module(f"livens.{modules[name]}")
        return getattr(cls, name)

    def __dir__(cls) -> list[str]:
        return sorted({*super().__dir__(), *cls._late_attributes()})


class LateAttributes(metaclass=LateAttributesType):
    """Base of classes with late-bound attributes; importing their modules attaches them to the class."""

    @classmethod
    def _late_attributes(cls) -> Mapping[str, str]:
        """Return the modules that attach the late-bound attributes, by the names of the attributes.

        Returns
        -------
        mapping of str to str
            Module below ``livens`` by attribute.
        """
        return {}

    def __getattr__(self, name: str) -> Any:
        """Import the layer that attaches an attribute on its first use."""
        if name in self._late_attributes() and name not in vars(type(self)):
            getattr(type(self), name)
            return getattr(self, name)
        raise AttributeError(f"a {type(self).__name__} has no '{name}'{suggestion(name, dir(self))}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._late_attributes()})
