"""The figures of the works livens is built on, drawn anew from our own runs, with what they claim, measured.

>>> from livens import reproduce
>>> [entry.number for entry in reproduce.figures("S000")]
['2', '3', '4', '5', '6', '7', '8']
"""

from __future__ import annotations

from livens.reproduce.core import SOURCES, Claim, Drawn, Entry, Report, Source, figures, reproduce, reproduce_all

__all__ = ["SOURCES", "Claim", "Drawn", "Entry", "Report", "Source", "figures", "reproduce", "reproduce_all"]
