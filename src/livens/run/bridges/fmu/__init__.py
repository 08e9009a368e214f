"""Export of models as Functional Mock-up Units (FMI 3.0, co-simulation)."""

from livens.run.bridges.fmu.export import fmu

__all__ = ["fmu"]
