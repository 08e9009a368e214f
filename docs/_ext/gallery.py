"""Sphinx extension: gallery of the built-in problems, written from the registries before the pages are read."""

from __future__ import annotations

import base64
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

#: Problems whose pages contain an interactive animation, with the simulated time in seconds (None: the default).
FILMS: dict[str, float | None] = {
    "simple-pendulum": 6.0,
    "double-pendulum": 10.0,
    "double-four-bar": 6.0,
    "slider-crank": 3.0,
    "kepler": 12.6,
    "six-axis-arm": 3.0,
    "bricard": 6.0,
    "rssr": 4.0,
    "double-wishbone": 2.0,
    "flyball-governor": 3.0,
    "gimbal-gyroscope": 3.0,
    "spatial-slider-crank": 3.0,
    "heavy-top": 0.5,
    "lie-heavy-top": 1.0,
    "rolling-disc": 5.0,
    "free-rigid-body": 3.0,
    "spherical-pendulum": 6.0,
    "spring-pendulum": 3.0,
    "bouncing-ball": 2.0,
    "newtons-cradle": 2.0,
    "dominoes": 1.0,
    "closed-loop-bars-multibody": 5.0,
    "flying-spaghetti-2d": 6.0,
    "link-chain": 2.0,
    "outer-solar-system": 20000.0,
}
#: Number of frames of an animation in a page.
_FRAMES = 240


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
    from livens.problems.sections import by_section

    films = json.loads(files("livens.lab").joinpath("assets/gallery.json").read_text(encoding="utf-8"))
    entries = {entry.name: entry for entry in problems.all()}
    for name, film in films.items():
        write_if_changed(DOCS / "_static" / "gallery" / f"{name}.svg", thumbnail(film, film["frames"] // 3))
    write_if_changed(DOCS / "_static" / "gallery" / "films.js", f"window.livensFilms = {json.dumps(films)};\n")
    lines = [
        "---\nhtml_theme.sidebar_secondary.remove: true\n---\n",
        "# Gallery\n",
        f"livens contains {len(entries)} built-in problems. Every page shows how to run the problem, its options and "
        f"its source; {len(FILMS)} pages contain an animation that you can turn and replay.\n",
        '```{raw} html\n<input type="search" id="gallery-search" class="form-control" '
        'placeholder="search, such as pendulum or friction" aria-label="search the problems">\n```\n',
    ]
    for title, names in by_section(entries).items():
        lines += [f"## {title}", "", "::::{grid} 2 2 3 4", ":gutter: 2", ""]
        for name in names:
            lines += [f":::{{grid-item-card}} {name}"]
            if name in films:
                lines += [f":img-top: ../_static/gallery/{name}.svg", f":img-alt: {name}"]
            lines += [f":link: {name}", ":link-type: doc", "", capitalised(entries[name].summary), ":::"]
        lines += ["::::", ""]
    lines += ["```{toctree}", ":hidden:", "", *sorted(entries), "```", "", player()]
    write_if_changed(DOCS / "gallery" / "index.md", "\n".join(lines))
    for name, entry in entries.items():
        write_if_changed(DOCS / "gallery" / f"{name}.md", problem_page(entry, name in films))


def player() -> str:
    """Return the scripts that replace the pictures of the cards by animations."""
    scripts = "".join(f'<script defer src="../_static/{path}"></script>\n' for path in ("gallery/films.js", "cards.js"))
    return f"```{{raw}} html\n{scripts}```\n"


def problem_page(entry: Any, has_thumbnail: bool) -> str:
    """Return the page of a built-in problem."""
    from livens.problems.option_descriptions import option_description

    rows = "\n".join(
        f"| `{option}` | `{default!r}` | {option_description(entry.name, option)} |"
        for option, default in entry.options.items()
    )
    options = f"\n## Options\n\n| option | default | meaning |\n|---|---|---|\n{rows}\n" if rows else ""
    example = next(iter(entry.options), "")
    change = (
        f"\nChange an option in Python by `lv.problems.load({entry.name!r}, {example}=...)`, on the command line by "
        f"`--set {example}=...`.\n"
        if example
        else ""
    )
    source = f"\n\nSource: {entry.source}." if entry.source and entry.source != "livens" else ""
    image = f"![{entry.name}](../_static/gallery/{entry.name}.svg){{width=420px}}\n\n" if has_thumbnail else ""
    if entry.name in FILMS:
        image = viewer_frame(f"../_static/films/{entry.name}.html", entry.name)
    return (
        f"# {entry.name}\n\n{capitalised(entry.summary)}.{source}\n\n{image}"
        f"```python\nimport livens as lv\n\nrun = lv.simulate(lv.problems.load({entry.name!r}))\n"
        f"print(run.report())\nrun.view()\n```\n\n"
        f"On the command line:\n\n```shell\nlivens run {entry.name}\nlivens view {entry.name}\n```\n\n"
        f"The default scheme is `{entry.scheme}`. `livens show {entry.name}` lists the applicable schemes.\n"
        f"{options}{change}"
    )


def viewer_frame(path: str, title: str) -> str:
    """Return an embedded animation page as Markdown."""
    return (
        f'```{{raw}} html\n<iframe class="livens-viewer" src="{path}" title="Animation: {title}" loading="lazy">'
        "</iframe>\n```\n\n"
    )


def write_films() -> None:
    """Simulate the problems of `FILMS` and write their animation pages, unless they are newer than the viewer."""
    import livens as lv
    from livens.run.progress import Progress

    folder = DOCS / "_static" / "films"
    folder.mkdir(parents=True, exist_ok=True)
    viewer = max(Path(str(asset)).stat().st_mtime for asset in files("livens.viewer").joinpath("assets").iterdir())
    pages = {name: folder / f"{name}.html" for name in FILMS}
    missing = [name for name, page in pages.items() if not page.exists() or page.stat().st_mtime < viewer]
    with Progress("animations of the gallery", len(missing), unit="problems") as bar:
        for count, name in enumerate(missing, 1):
            problem = lv.problems.load(name)
            run = lv.simulate(problem, t_end=FILMS[name] or problem.t_end, progress=False)
            run.animate(pages[name], frames=_FRAMES)
            bar.update(count)


def capitalised(sentence: str) -> str:
    """Return a sentence with a capital first letter."""
    return sentence[:1].upper() + sentence[1:]


def setup(app: Any) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    write_gallery()
    write_films()
    return {"parallel_read_safe": True}
