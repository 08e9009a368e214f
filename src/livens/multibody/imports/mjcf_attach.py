"""MJCF `attach`: sub-trees of other models, with a prefix to all of their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from livens.errors import InputError, suggestion
from livens.multibody.imports.xml import XmlNode
from livens.validation import check_readable_path

#: Attributes that contain names.
_REFERENCES = frozenset(
    "name class childclass body body1 body2 joint joint1 joint2 jointinparent tendon tendon1 tendon2 site site1 site2 "
    "refsite geom geom1 geom2 mesh material texture hfield cranksite slidersite sidesite".split()
)
#: References of elements that are dropped if what they refer to is not attached.
_ENDS = _REFERENCES - {"name", "class", "childclass", "material", "texture", "mesh", "hfield", "sidesite"}
_SECTIONS = ("contact", "equality", "tendon", "actuator")
#: Compiler settings that must be those of the attaching model.
_SETTINGS = {
    "angle": "degree",
    "eulerseq": "xyz",
    "autolimits": "true",
    "inertiafromgeom": "auto",
    "balanceinertia": "false",
}
#: Largest number of attached models in a file, and of levels of attached models.
_MAX_ATTACHMENTS, _MAX_LEVELS = 1000, 10


def attach_models(root: XmlNode, folder: Path, depth: int = 0) -> None:
    """Replace all `attach` elements of a model by the content of the models in its assets."""
    from livens.multibody.imports.mjcf_defaults import read_root

    models = {
        node.text("name"): node
        for assets in root.children_with_tag("asset")
        for node in assets.children_with_tag("model")
    }
    attachments = [(parent, node) for parent in root.iterate() for node in parent.children_with_tag("attach")]
    if depth > _MAX_LEVELS or len(attachments) > _MAX_ATTACHMENTS:
        raise root.error("too many attached models, or a model that attaches itself")
    for parent, node in attachments:
        name = node.text("model")
        if name not in models:
            raise node.error(f"there is no model '{name}' in <asset>{suggestion(name, models)}")
        file = folder / models[name].text("file")
        try:
            inner = read_root(check_readable_path(file), root.document)
        except InputError as error:
            raise node.error(str(error)) from None
        attach_models(inner, file.parent, depth + 1)
        _attach(root, parent, node, inner, os.path.relpath(file.parent, folder))


def _attach(root: XmlNode, parent: XmlNode, node: XmlNode, inner: XmlNode, folder: str) -> None:
    """Insert the bodies of one model in place of an element, and append the sections that refer to them."""
    for setting, default in _SETTINGS.items():
        values = [_compiler_setting(model, setting, default) for model in (root, inner)]
        if values[0] != values[1]:
            raise node.error(
                f"the compiler setting {setting} is '{values[1]}' in the attached model, not '{values[0]}'"
            )
    _resolve_files(root, inner, folder)
    prefix = node.text("prefix", "")
    body, worlds = node.get("body"), list(inner.children_with_tag("worldbody"))
    content = [child for world in worlds for child in world.children]
    if body is not None:
        bodies = {item.name: item for world in worlds for item in world.iterate() if item.tag == "body"}
        if body not in bodies:
            raise node.error(f"the attached model has no body '{body}'{suggestion(body, bodies)}")
        content = [bodies[body]]
    attached = {item.name for child in content for item in child.iterate() if item.name} | {"world"}
    sections = [section for section in inner.children if section.tag in _SECTIONS]
    for section in sections:
        section.children = [child for child in section.children if _ends(child) <= attached]
        attached |= {child.name for child in section.children if child.name}
        for child in section.children:
            child.attributes.setdefault("class", "main")
    main = f"{prefix}main"
    copied = [*sections, *(section for section in inner.children if section.tag in ("default", "asset"))]
    for item in (*content, *copied):
        for inner_node in item.iterate():
            _add_prefix(inner_node, prefix)
    for section in copied:
        if section.tag == "default":
            section.attributes.setdefault("class", main)
        if section.tag == "asset":
            for asset in section.children:
                asset.attributes.setdefault("class", main)
    frame = XmlNode("frame", {"childclass": main}, node.line, node.document, node.file, content)
    parent.children[parent.children.index(node)] = frame
    root.children += copied
    if not any(section.tag == "default" for section in copied):
        root.children.append(XmlNode("default", {"class": main}, node.line, node.document, node.file))


def _add_prefix(node: XmlNode, prefix: str) -> None:
    for name in _REFERENCES & node.attributes.keys():
        if node.attributes[name] != "world" or name in ("name", "class"):
            node.attributes[name] = prefix + node.attributes[name]


def _ends(node: XmlNode) -> set[str]:
    """Return the names that an element and its content refer to."""
    return {item.attributes[name] for item in node.iterate() for name in _ENDS & item.attributes.keys()}


def _compilers(model: XmlNode) -> Iterator[XmlNode]:
    return model.children_with_tag("compiler")


def _compiler_setting(model: XmlNode, name: str, default: str) -> str:
    value = default
    for node in _compilers(model):
        value = node.text(name, value)
    return value


def _resolve_files(root: XmlNode, inner: XmlNode, folder: str) -> None:
    """Change the mesh files of an attached model to paths relative to the mesh folder of the attaching model."""
    outer_folder, inner_folder = (
        _compiler_setting(model, "meshdir", "") or _compiler_setting(model, "assetdir", "") for model in (root, inner)
    )
    for assets in inner.children_with_tag("asset"):
        for mesh in assets.children_with_tag("mesh"):
            file = mesh.get("file")
            if file is not None:
                mesh.attributes.setdefault("name", file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0])
                path = Path(folder) / inner_folder / file.replace("\\", "/")
                mesh.attributes["file"] = os.path.relpath(path, outer_folder or ".").replace("\\", "/")
