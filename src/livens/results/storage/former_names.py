"""Names on disk that differ from the present names: fields of scenario descriptions in earlier result files."""

from __future__ import annotations

from collections.abc import Mapping

#: Present names of the former fields of a scenario.
SCENARIO_FIELDS = {"start": "initial"}
#: Present names of the former fields of a body and of initial values in a scenario.
_ELEMENT_FIELDS = {"bodies": {"look": "visual"}, "initial": {"hold": "required"}}
#: Present name of the former initial velocity of a sliding joint.
_JOINT_VELOCITY = {"speed": "velocity"}


def present_description(description: Mapping[str, object]) -> dict[str, object]:
    """Return the description of a scenario in the present names of its fields.

    >>> present_description({"system": {}, "start": {"x": "1"}})
    {'system': {}, 'initial': {'x': '1'}}
    """
    present = {SCENARIO_FIELDS.get(name, name): value for name, value in description.items()}
    for name, fields in _ELEMENT_FIELDS.items():
        elements = present.get(name)
        if "system" not in present and isinstance(elements, Mapping):
            known = fields | (_JOINT_VELOCITY if name == "initial" else {})
            present[name] = {element: _renamed(values, known) for element, values in elements.items()}
    return present


def _renamed(values: object, names: Mapping[str, str]) -> object:
    if not isinstance(values, Mapping):
        return values
    return {names.get(str(name), name): value for name, value in values.items()}
