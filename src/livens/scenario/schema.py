"""Schema of scenario files: fields, their types and validation messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from livens.errors import InputError, suggestion
from livens.run.plan import TIERS
from livens.scenario.evaluate import evaluate
from livens.scenario.grammar import COMMA_HINT, names, parse
from livens.scenario.quoting import quoted
from livens.scenario.reader import Document, YamlPath
from livens.scenario.tokens import ExpressionError

#: Largest number of errors in a message.
_MAX_ERRORS = 10
#: Nominal step size in seconds of scenarios with a tolerance and without h.
_STEP_SIZE_WITH_TOLERANCE = 1e-3
#: Largest count that a float represents exactly.
_MAX_COUNT = 2**53


def _describe(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "fields with names"
    return "a list" if isinstance(value, list) else f"'{quoted(value)}'"


def _parse_text(value: object) -> str:
    """Return a string; numbers from Python become strings with the same value."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not abs(value) < math.inf:
            raise ValueError(f"must be a finite number, got {value}")
        return repr(float(value))
    raise ValueError(f"must be a string, got {_describe(value)}")


def _parse_expression(value: object) -> str:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
        return _parse_text(value)
    raise ValueError(f"must be a number or an expression, got {_describe(value)}")


def constant(value: object) -> float:
    """Return the value of a number or of a constant expression."""
    text = _parse_expression(value)
    tree = parse(text)
    for name in names(tree):
        if name.name not in ("pi", "e"):
            reason = f"must be a number or a constant expression such as pi/2, but '{name.name}' is not constant"
            raise ExpressionError(reason, text, name.column)
    return float(evaluate(tree, {}, text))


def _parse_positive(value: object) -> float:
    number = constant(value)
    if number <= 0:
        raise ValueError(f"must be greater than 0, got {number:g}")
    return number


def _parse_count(value: object) -> int:
    number = constant(value)
    if number < 1 or number != math.floor(number):
        raise ValueError(f"must be a whole number of at least 1, got {number:g}")
    if number > _MAX_COUNT:
        raise ValueError(f"must be at most {_MAX_COUNT}, got {number:g}")
    return int(number)


def _parse_bool(value: object) -> bool:
    if value in ("true", "false", True, False):
        return value in ("true", True)
    raise ValueError(f"must be true or false, got {_describe(value)}")


def _one_of(*allowed: str) -> BeforeValidator:
    def check(value: object) -> str:
        if value not in allowed:
            raise ValueError(
                f"must be {' or '.join(allowed)}, got {_describe(value)}{suggestion(str(value)[:60], allowed)}"
            )
        return str(value)

    return BeforeValidator(check)


def _parse_file_name(value: object) -> str:
    name = _parse_text(value)
    if not name.isprintable():
        raise ValueError(f"must be the name of a file, got {_describe(value)}")
    return name


def _parse_names(value: object) -> list[str]:
    if isinstance(value, str):
        return value.replace(",", " ").split()
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return list(value)
    raise ValueError(f"must be names such as: x y, got {_describe(value)}")


def _parse_table(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be names with values (name: value), got {_describe(value)}")
    return {str(name): item for name, item in value.items()}


def _parse_table_or_list(value: object) -> dict[str, Any] | list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, Mapping):
        return _parse_table(value)
    raise ValueError(
        f"must be a list of expressions, or names with expressions (name: expression), got {_describe(value)}"
    )


def _parse_option(value: object) -> float | list[float]:
    return [constant(item) for item in value] if isinstance(value, (list, tuple)) else constant(value)


def _parse_problem_option(value: object) -> float | list[float] | str:
    """Return a number, numbers, or a word; the scenario checks which options of a problem are words."""
    try:
        return _parse_option(value)
    except ExpressionError:
        if isinstance(value, str) and value.replace("-", "_").isidentifier():
            return value
        raise


Text = Annotated[str, BeforeValidator(_parse_text)]
Expression = Annotated[str, BeforeValidator(_parse_expression)]
Table = Annotated[dict[str, Expression], BeforeValidator(_parse_table)]
#: Tags of a union in pydantic's path to a value; they cannot be field names.
_TAGS = ("<names>", "<list>")
TableOrList = Annotated[
    Annotated[dict[str, Expression], Tag(_TAGS[0])] | Annotated[list[Expression], Tag(_TAGS[1])],
    Discriminator(lambda value: _TAGS[isinstance(value, list)]),
    BeforeValidator(_parse_table_or_list),
]
Number = Annotated[float, BeforeValidator(constant)]
Positive = Annotated[float, BeforeValidator(_parse_positive)]


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_fields(cls, values: object) -> Any:
        """Drop fields without a value, such as those with a commented-out value."""
        if not isinstance(values, Mapping):
            raise ValueError(f"must be fields with values ({', '.join(cls.model_fields)}), got {_describe(values)}")
        return {key: value for key, value in values.items() if value is not None or key not in cls.model_fields}


class RunFields(_Fields):
    """Fields of the run, common to all scenarios."""

    scheme: Text | None = None
    t0: Number | None = None
    every: Annotated[int | None, BeforeValidator(_parse_count)] = None
    out: Annotated[str | None, BeforeValidator(_parse_file_name)] = None
    project: Annotated[bool | None, BeforeValidator(_parse_bool)] = None
    redundant: Annotated[str | None, _one_of("error", "remove")] = None
    tier: Annotated[str | None, _one_of(*TIERS)] = None
    threads: Annotated[int | None, BeforeValidator(_parse_count)] = None
    tolerance: Positive | None = None
    adaptive: Annotated[str | None, _one_of("reversible")] = None
    scaling: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_step_size(cls, values: object) -> Any:
        """Set the step size of runs with a tolerance, whose first step is found from the tolerance."""
        if not isinstance(values, Mapping) or values.get("h") is not None or values.get("tolerance") is None:
            return values
        return {**values, "h": _STEP_SIZE_WITH_TOLERANCE} if cls.model_fields["h"].is_required() else values


class ProblemScenario(RunFields):
    """Built-in problem with changed options."""

    problem: Text = Field(description="the name of a built-in problem (livens list problems)")
    options: Annotated[
        dict[str, Annotated[Any, BeforeValidator(_parse_problem_option)]], BeforeValidator(_parse_table)
    ] = {}
    parameters: Annotated[dict[str, Annotated[Any, BeforeValidator(_parse_option)]], BeforeValidator(_parse_table)] = {}
    h: Positive | None = None
    t_end: Number | None = None


class SystemFields(_Fields):
    """System defined by expressions."""

    coordinates: Annotated[list[str], BeforeValidator(_parse_names)] = Field(description="names such as: x y")
    parameters: Table = {}
    let: Table = {}
    kinetic: Expression = Field(description="the kinetic energy, such as: m/2*v_x**2")
    potential: Expression | None = None
    constraints: TableOrList = {}
    dissipation: Expression | None = None
    forces: TableOrList = {}


class SystemScenario(RunFields):
    """System defined by expressions, with initial values."""

    system: SystemFields = Field(description="coordinates, parameters, energies and constraints")
    initial: Table = Field(description="a value for every coordinate; velocities are 0 by default")
    h: Positive = Field(description="the step size")
    t_end: Number = Field(description="the end time")


def _parse_elements(value: object) -> dict[str, dict[str, Any]]:
    """Return a table of elements, each with its fields."""
    table = _parse_table(value)
    for name, fields in table.items():
        if not isinstance(fields, Mapping):
            raise ValueError(
                f"'{quoted(name)}' must have fields with values ({{name: value}}), got {_describe(fields)}"
            )
    return {name: {str(key): item for key, item in fields.items()} for name, fields in table.items()}


ElementTables = Annotated[dict[str, dict[str, Any]], BeforeValidator(_parse_elements)]


class MechanismScenario(RunFields):
    """Mechanism of bodies, joints and forces; the fields of elements are validated when the model is built."""

    gravity: list[Any] | None = None
    planar: Annotated[bool | None, BeforeValidator(_parse_bool)] = None
    velocity_level: Annotated[bool | None, BeforeValidator(_parse_bool)] = None
    redundant: Annotated[str | None, _one_of("error", "remove", "auto")] = None
    parameters: Table = {}
    bodies: ElementTables = Field(description="names of bodies with their shapes, positions and masses")
    joints: ElementTables = {}
    forces: ElementTables = {}
    contacts: ElementTables = {}
    initial: ElementTables = {}
    sensors: ElementTables = {}
    h: Positive = Field(description="the step size")
    t_end: Number = Field(description="the end time")


class RobotScenario(MechanismScenario):
    """Robot from a URDF or MJCF file; bodies, joints and forces may be added."""

    robot: Text = Field(description="a URDF or MJCF file, relative to the folder of this file")
    base: Annotated[str | None, _one_of("fixed", "floating")] = None
    limit_stiffness: Positive | None = None
    robot_contacts: Table = {}
    bodies: ElementTables = {}
    h: Positive = 1e-3
    t_end: Number = 1.0


AnyScenario = ProblemScenario | SystemScenario | MechanismScenario


def validate(document: Document) -> AnyScenario:
    """Validate a document and return its fields; raise one InputError that lists all errors."""
    tree = document.tree
    if not isinstance(tree, Mapping):
        raise document.error((), f"a scenario must consist of fields with values (name: value), got {_describe(tree)}")
    scenario_types: dict[str, type[AnyScenario]] = {
        "problem": ProblemScenario,
        "system": SystemScenario,
        "robot": RobotScenario,
        "bodies": MechanismScenario,
    }
    present = [field for field in scenario_types if field in tree]
    if present == ["robot", "bodies"]:
        present = ["robot"]
    if len(present) != 1:
        if present:
            raise document.error(
                (present[-1],),
                "a scenario has one of the fields 'problem', 'system', 'robot', 'bodies', not several of them",
            )
        hints = (
            suggestion(str(key)[:60], scenario_types) for key in tree if str(key) not in SystemScenario.model_fields
        )
        hint = next((hint for hint in hints if "mean" in hint), "")
        raise document.error((), f"a scenario needs one of the fields 'problem', 'system', 'robot' and 'bodies'{hint}")
    model = scenario_types[present[0]]
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        messages = [_format_error(document, model, item) for item in errors[:_MAX_ERRORS]]
        if len(errors) > _MAX_ERRORS:
            messages.append(f"... and {len(errors) - _MAX_ERRORS} more")
        raise InputError("\n".join(messages)) from None


def _format_error(document: Document, model: type[BaseModel], item: Any) -> str:
    """Return the message of a pydantic error with its location."""
    path: YamlPath = tuple(key for key in item["loc"] if key not in _TAGS)
    owner = SystemFields if path[:1] == ("system",) and len(path) > 1 else model
    if item["type"] == "extra_forbidden":
        name = str(path[-1])
        return f"{document.location(path)}: unknown field '{quoted(name)}'{suggestion(name[:60], owner.model_fields)}"
    if item["type"] == "missing":
        expected = owner.model_fields[str(path[-1])].description
        return f"{document.location(path[:-1])}: the field '{path[-1]}' is missing: give {expected}"
    reason = str(item["ctx"]["error"]) if "error" in item.get("ctx", {}) else item["msg"]
    if ")" in str(path[-1:]) and "got nothing" in reason:  # {a: atan2(y, x)} has a field named "x)"
        reason += f" ({COMMA_HINT})"
    return f"{document.location(path)}: {reason}"
