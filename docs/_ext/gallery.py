"""Sphinx extension: gallery and scheme catalogue, written from the registries of livens before the pages are read."""

from __future__ import annotations

import base64
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

#: Problems shown first, by section; the remaining problems follow in the section "More".
SECTIONS = {
    "Start here": "simple-pendulum double-pendulum double-four-bar slider-crank kepler six-axis-arm",
    "Mechanisms": "bricard rssr double-wishbone flyball-governor andrews-squeezer gimbal-gyroscope",
    "Rigid bodies and tops": "heavy-top lie-heavy-top rattleback tippe-top free-rigid-body rolling-disc",
    "Contact": "bouncing-ball newtons-cradle dominoes box-stack snooker balls-in-a-box",
    "Elastic bodies": "roll-up 45-degree-bend flying-spaghetti-3d beam-slider-crank hanging-net cable-drop",
    "Bearings and vehicles": "ball-bearing wheelset car-axis rotating-shaft",
    "Celestial mechanics": "outer-solar-system pleiades",
    "Hamiltonian systems": "henon-heiles fput toda cart-pole",
    "Multi-physics": "loudspeaker motor-slider-crank rlc-circuit",
}


def write_if_changed(path: Path, text: str) -> None:
    """Write a text file unless it has this content already, so that unchanged pages are not built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def thumbnail(film: dict[str, Any], frame: int) -> str:
    """Return one frame of an animated thumbnail as SVG."""
    points = base64.b64decode(film["points"])
    position = frame * film["size"]
    drawn = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 256 192" fill="none" stroke-linecap="round">']
    for shape, count, colour_index in film["lines"]:
        colour = "#9a9a96" if colour_index < 0 else _PALETTE[colour_index % len(_PALETTE)]
        corners = [(points[position + 2 * i], 223.5 - points[position + 2 * i + 1]) for i in range(count)]
        position += 2 * count
        x, y = corners[0]
        if shape == "ground":
            drawn.append(f'<path d="M{x} {y:g}l-5 8h10z" fill="{colour}"/>')
        elif count == 1:
            drawn.append(f'<circle cx="{x}" cy="{y:g}" r="4" fill="{colour}"/>')
        else:
            outline = "L".join(f"{x} {y:g}" for x, y in corners)
            drawn.append(f'<path d="M{outline}" stroke="{colour}" stroke-width="{3 if shape == "rod" else 1.4}"/>')
    return "".join(drawn) + "</svg>\n"


def write_gallery() -> None:
    """Write a page per built-in problem and the gallery's index of cards."""
    from livens import problems

    films = json.loads(files("livens.lab").joinpath("assets/gallery.json").read_text(encoding="utf-8"))
    entries = {entry.name: entry for entry in problems.all()}
    for name, film in films.items():
        write_if_changed(DOCS / "_static" / "gallery" / f"{name}.svg", thumbnail(film, film["frames"] // 3))
    sections = {title: names.split() for title, names in SECTIONS.items()}
    shown = {name for names in sections.values() for name in names}
    unknown = shown - set(entries)
    if unknown:
        raise ValueError(f"the gallery's sections name problems that do not exist: {', '.join(sorted(unknown))}")
    sections["More"] = sorted(set(entries) - shown)
    lines = ["# Gallery", "", f"{len(entries)} built-in problems. Each page shows how to run the problem.", ""]
    for title, names in sections.items():
        lines += [f"## {title}", "", "::::{grid} 2 2 3 4", ":gutter: 2", ""]
        for name in names:
            lines += [f":::{{grid-item-card}} {name}"]
            if name in films:
                lines += [f":img-top: ../_static/gallery/{name}.svg"]
            lines += [f":link: {name}", ":link-type: doc", "", capitalised(entries[name].summary), ":::"]
        lines += ["::::", ""]
    lines += ["```{toctree}", ":hidden:", "", *sorted(entries), "```", ""]
    write_if_changed(DOCS / "gallery" / "index.md", "\n".join(lines))
    for name, entry in entries.items():
        write_if_changed(DOCS / "gallery" / f"{name}.md", problem_page(entry, name in films))


def problem_page(entry: Any, has_film: bool) -> str:
    """Return the page of a built-in problem."""
    rows = "\n".join(f"| `{option}` | `{default!r}` |" for option, default in entry.options.items())
    options = f"\n## Options\n\n| option | default |\n|---|---|\n{rows}\n" if rows else ""
    source = f" Source: {entry.source}." if entry.source else ""
    image = f"![{entry.name}](../_static/gallery/{entry.name}.svg){{width=420px}}\n\n" if has_film else ""
    return (
        f"# {entry.name}\n\n{capitalised(entry.summary)}.{source}\n\n{image}"
        f"```python\nimport livens as lv\n\nrun = lv.simulate(lv.problems.load({entry.name!r}))\n"
        f"print(run.report())\nrun.view()\n```\n\n"
        f"On the command line:\n\n```shell\nlivens run {entry.name}\nlivens view {entry.name}\n```\n\n"
        f"Default scheme: `{entry.default_scheme or 'that of the model'}`.\n{options}"
    )


def capitalised(sentence: str) -> str:
    """Return a sentence with a capital first letter."""
    return sentence[:1].upper() + sentence[1:]


def setup(app: Any) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    write_gallery()
    return {"parallel_read_safe": True}
