"""Update the claim tables and pictures of the reproduced papers from the reports of `livens reproduce`.

for work in kinon-betsch-2023 ...; do livens reproduce $work --out reports/$work; done
python docs/figures/papers.py reports
"""

from __future__ import annotations

import datetime
import platform
import sys
from pathlib import Path

from PIL import Image

import livens
from livens import reproduce

DOCS = Path(__file__).resolve().parents[1]
HEADER = ("| figure | claim | measured, limit | |", "|---|---|---|---|")


def claim_rows(report: Path) -> list[str]:
    """Return the rows of the claim table of a report, without claims that are shown without judgement."""
    lines = report.read_text(encoding="utf-8").splitlines()
    first = lines.index("|---|---|---|---|") + 1
    rows = lines[first : lines.index("", first)]
    return [row for row in rows if not row.endswith("| shown |")]


def update_page(work: str, folder: Path) -> None:
    """Replace the claim table of a page, and the pictures that the page shows."""
    page = DOCS / "theory" / "papers" / f"{work}.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    title = next(i for i, line in enumerate(lines) if line.startswith(":::{dropdown} All claims"))
    end = next(i for i in range(title + 1, len(lines)) if lines[i] == ":::")
    today = datetime.date.today()
    system = f"livens {livens.__version__}, {platform.system()} {platform.machine()}, {today.day} {today:%B %Y}"
    dropdown = f":::{{dropdown}} All claims with measured values ({system})"
    table = [dropdown, "", *HEADER, *claim_rows(folder / "report.md")]
    page.write_text("\n".join([*lines[:title], *table, *lines[end:]]) + "\n", encoding="utf-8")
    for picture in (DOCS / "pictures" / "papers").glob(f"{work}-*.png"):
        number = picture.stem.removeprefix(f"{work}-")
        if (drawn := folder / f"{work}-figure-{number.zfill(2)}.png").exists():
            Image.open(drawn).convert("RGB").quantize(64).save(picture, optimize=True)


if __name__ == "__main__":
    for name in reproduce.SOURCES:
        update_page(name, Path(sys.argv[1]) / name)
