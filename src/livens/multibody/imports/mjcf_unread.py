"""Report of ignored MJCF content, one message per category."""

from __future__ import annotations

from livens.multibody.imports.xml import Document

_CONTACT = {"contype", "conaffinity", "condim", "friction", "margin", "gap", "solmix", "priority", "solref", "solimp"}
_LOOK = {"rgba", "material", "group", "user", "fluidshape", "fluidcoef", "size", "type", "fromto", "hfield", "fitscale"}
_LOOK_TAGS = {"camera", "light", "texture", "material", "visual", "statistic", "skin", "hfield", "custom"}
_SOFT = {"solref", "solimp", "solreflimit", "solimplimit", "solreffriction", "solimpfriction", "margin", "torquescale"}
_CLAMPS = {"ctrlrange", "forcerange", "ctrllimited", "forcelimited", "actrange", "actlimited", "actuatorfrcrange"}
_CLAMPS |= {"actuatorfrclimited", "actuatorgravcomp", "inheritrange"}
_RUNS = {"option", "size", "flag"}
_SENTENCES = {
    "contact": "contacts are not imported, bodies do not collide",
    "look": "colours, materials, lights, cameras and groups are not imported",
    "soft": "constraints are exact: the compliance parameters of MuJoCo are not imported",
    "clamp": "control and force ranges of actuators are not imported",
    "run": "simulation options of MuJoCo are not imported",
    "sensor": "sensors are not imported, see results by name and mb.sensor",
    "keyframe": "stored states are not imported, see mb.initial",
    "other": "not imported",
}


def unread(document: Document) -> list[str]:
    """Return messages on ignored content, each with the elements and attributes concerned."""
    found: dict[str, list[str]] = {}
    for (tag, inner), count in document.unread().items():
        what = f"{tag} {inner[1:]}" if inner.startswith("@") else f"<{inner}>"
        found.setdefault(_reason(tag, inner.lstrip("@"), inner.startswith("@")), []).append(
            f"{what} ({count} times)" if count > 1 else what
        )
    order = [reason for reason in _SENTENCES if reason in found]
    if "geom" in {node.tag for node in document.root.walk()} and "contact" not in order:
        return [_SENTENCES["contact"], *(f"{_SENTENCES[reason]}: {', '.join(found[reason])}" for reason in order)]
    return [f"{_SENTENCES[reason]}: {', '.join(found[reason])}" for reason in order]


def _reason(tag: str, inner: str, attribute: bool) -> str:
    if not attribute:
        if inner in _LOOK_TAGS:
            return "look"
        return inner if inner in ("contact", "sensor", "keyframe") else "run" if inner in _RUNS else "other"
    if tag in _RUNS:
        return "run"
    if tag in ("geom", "pair") and inner in _CONTACT:
        return "contact"
    if inner in _SOFT:
        return "soft"
    if inner in _CLAMPS:
        return "clamp"
    return "look" if inner in _LOOK else "other"
