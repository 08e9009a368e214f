"""Report of ignored MJCF content, one message per category."""

from __future__ import annotations

from livens.multibody.imports.xml import TrackedDocument

_CONTACT = {"contype", "conaffinity", "condim", "friction", "margin", "gap", "solmix", "priority", "solref", "solimp"}
_VISUAL = {
    "rgba",
    "material",
    "group",
    "user",
    "fluidshape",
    "fluidcoef",
    "size",
    "type",
    "fromto",
    "hfield",
    "fitscale",
}
_VISUAL_TAGS = {"camera", "light", "texture", "material", "visual", "statistic", "skin", "hfield", "custom"}
_SOLVER = {
    "solref",
    "solimp",
    "solreflimit",
    "solimplimit",
    "solreffriction",
    "solimpfriction",
    "margin",
    "torquescale",
}
_CONTROL_RANGES = {
    "ctrlrange",
    "forcerange",
    "ctrllimited",
    "forcelimited",
    "actrange",
    "actlimited",
    "actuatorfrcrange",
}
_CONTROL_RANGES |= {"actuatorfrclimited", "actuatorgravcomp", "inheritrange"}
_SIMULATION_TAGS = {"option", "size", "flag"}
_MESSAGES = {
    "contact": "contacts are not imported, bodies do not collide",
    "look": "textures, reflections, lights and cameras are not imported",
    "soft": "constraints are exact: the compliance parameters of MuJoCo are not imported",
    "clamp": "control and force ranges of actuators are not imported",
    "run": "simulation options of MuJoCo are not imported",
    "sensor": "sensors are not imported, see results by name and mb.sensor",
    "keyframe": "stored states are not imported unless keyframe= names one, see also mb.initial",
    "other": "not imported",
}


def ignored_content(document: TrackedDocument, contacts: bool = False) -> list[str]:
    """Return messages on ignored content, each with the elements and attributes concerned."""
    messages = _MESSAGES | ({"contact": "properties of contacts that are not imported"} if contacts else {})
    by_category: dict[str, list[str]] = {}
    for (tag, inner), count in document.unread().items():
        item = f"{tag} {inner[1:]}" if inner.startswith("@") else f"<{inner}>"
        by_category.setdefault(_category(tag, inner.lstrip("@"), inner.startswith("@")), []).append(
            f"{item} ({count} times)" if count > 1 else item
        )
    order = [category for category in _MESSAGES if category in by_category]
    if not contacts and "geom" in {node.tag for node in document.root.iterate()} and "contact" not in order:
        return [
            messages["contact"],
            *(f"{messages[category]}: {', '.join(by_category[category])}" for category in order),
        ]
    return [f"{messages[category]}: {', '.join(by_category[category])}" for category in order]


def _category(tag: str, inner: str, attribute: bool) -> str:
    if not attribute:
        if inner in _VISUAL_TAGS:
            return "look"
        return inner if inner in ("contact", "sensor", "keyframe") else "run" if inner in _SIMULATION_TAGS else "other"
    if tag in _SIMULATION_TAGS:
        return "run"
    if tag in ("geom", "pair") and inner in _CONTACT:
        return "contact"
    if inner in _SOLVER:
        return "soft"
    if inner in _CONTROL_RANGES:
        return "clamp"
    return "look" if inner in _VISUAL else "other"
