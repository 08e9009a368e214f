"""Reproduction of published figures: runs of livens, plots, and measured claims of each paper.

>>> from livens import reproduce
>>> [entry.number for entry in reproduce.figures("kinon-betsch-2023")]
['2', '3', '4', '5', '6', '7', '8']
"""

from __future__ import annotations

from livens.reproduce.core import (
    SOURCES,
    Claim,
    FigureEntry,
    FigureResult,
    Report,
    Source,
    figures,
    reproduce,
    reproduce_all,
)

__all__ = [
    "SOURCES",
    "Claim",
    "FigureEntry",
    "FigureResult",
    "Report",
    "Source",
    "figures",
    "reproduce",
    "reproduce_all",
]
