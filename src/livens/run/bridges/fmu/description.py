"""Model description of an FMU: variables, value references and the XML file of FMI 3.0 or 2.0."""

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

    def to_xml(self, version: str) -> str:
        """Return the XML element of the variable."""
        variability = "tunable" if self.causality == "parameter" else "continuous"
        known = (
            f'name={quoteattr(self.name)} valueReference="{self.reference}" causality="{self.causality}" '
            f'variability="{variability}"'
        )
        start, initial = ("", ' initial="calculated"') if self.start is None else (f' start="{self.start!r}"', "")
        if version == "2.0":
            return f"<ScalarVariable {known}{initial}><Real{start}/></ScalarVariable>"
        return f"<Float64 {known}{initial}{start}/>"


@dataclass(frozen=True)
class ModelDescription:
    """Content of the file ``modelDescription.xml``."""

    name: str
    identifier: str
    token: str
    text: str
    h: float
    t0: float
    variables: Sequence[FmuVariable]

    def to_xml(self, version: str) -> str:
        """Return the file for FMI "3.0" or "2.0"."""
        lines = "\n".join(variable.to_xml(version) for variable in self.variables)
        outputs = [i for i, variable in enumerate(self.variables) if variable.causality == "output"]
        if version == "2.0":  # variables are numbered from 1, and time is the first one
            unknowns = "".join(f'<Unknown index="{i + 2}"/>' for i in outputs)
            structure = f"<Outputs>{unknowns}</Outputs><InitialUnknowns>{unknowns}</InitialUnknowns>" if outputs else ""
            token, abilities = "guid", 'canGetAndSetFMUstate="true" canSerializeFMUstate="true" '
            abilities += 'providesDirectionalDerivative="true"'
            time = '<ScalarVariable name="time" valueReference="0" causality="independent" variability="continuous">'
            time += "<Real/></ScalarVariable>"
        else:
            references = [self.variables[i].reference for i in outputs]
            structure = "".join(f'<Output valueReference="{i}"/>' for i in references)
            structure += "".join(f'<InitialUnknown valueReference="{i}"/>' for i in references)
            token, abilities = "instantiationToken", 'canGetAndSetFMUState="true" canSerializeFMUState="true" '
            abilities += f'providesDirectionalDerivatives="true" fixedInternalStepSize="{self.h!r}"'
            time = '<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>'
        return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="{version}" modelName={quoteattr(self.name)} {token}="{self.token}"
 generationTool="livens {livens.__version__}" description={quoteattr(self.text)}>
<CoSimulation modelIdentifier="{self.identifier}" {abilities}
 canHandleVariableCommunicationStepSize="true" maxOutputDerivativeOrder="0"/>
<LogCategories><Category name="logStatusError"/></LogCategories>
<DefaultExperiment startTime="{self.t0!r}" stopTime="{self.t0 + 1.0!r}" stepSize="{self.h!r}"/>
<ModelVariables>
{time}
{lines}
</ModelVariables>
<ModelStructure>{structure}</ModelStructure>
</fmiModelDescription>
"""
