"""Model description of an FMU: variables, value references and the XML file of FMI 3.0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import livens


@dataclass(frozen=True)
class FmuVariable:
    """Variable of an FMU."""

    name: str
    reference: int
    #: "input", "parameter" or "output".
    causality: str
    #: Value at the start; None for outputs.
    start: float | None = None

    def to_xml(self) -> str:
        variability = "tunable" if self.causality == "parameter" else "continuous"
        value = 'initial="calculated"' if self.start is None else f'start="{self.start!r}"'
        return (
            f'<Float64 name={quoteattr(self.name)} valueReference="{self.reference}" causality="{self.causality}" '
            f'variability="{variability}" {value}/>'
        )


def model_description(
    name: str, identifier: str, token: str, text: str, h: float, t0: float, variables: Sequence[FmuVariable]
) -> str:
    """Return the file ``modelDescription.xml``."""
    outputs = [variable.reference for variable in variables if variable.causality == "output"]
    lines = "\n".join(variable.to_xml() for variable in variables)
    structure = "".join(f'<Output valueReference="{i}"/>' for i in outputs)
    structure += "".join(f'<InitialUnknown valueReference="{i}"/>' for i in outputs)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName={quoteattr(name)} instantiationToken="{token}"
 generationTool="livens {livens.__version__}" description={quoteattr(text)}>
<CoSimulation modelIdentifier="{identifier}" canGetAndSetFMUState="true" canSerializeFMUState="true"
 providesDirectionalDerivatives="true"
 canHandleVariableCommunicationStepSize="true" fixedInternalStepSize="{h!r}" maxOutputDerivativeOrder="0"/>
<LogCategories><Category name="logStatusError"/></LogCategories>
<DefaultExperiment startTime="{t0!r}" stopTime="{t0 + 1.0!r}" stepSize="{h!r}"/>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
{lines}
</ModelVariables>
<ModelStructure>{structure}</ModelStructure>
</fmiModelDescription>
"""
