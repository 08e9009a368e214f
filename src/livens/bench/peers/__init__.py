"""Other codes for the same problems, each in a separate process."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

from livens.bench.program import ProgramError, run_module


@dataclass
class Peer:
    """Other code, run `repeats` times per round with each of its settings.

    `facts` are those of its fastest run; `error` is the reason if there are none.
    """

    name: str
    module: str
    repeats: int = 1
    arguments: tuple[str, ...] = ()
    facts: dict[str, Any] | None = None
    trouble: str | None = None

    def play(self) -> None:
        """Run the code, if it is installed and has not failed before."""
        if importlib.util.find_spec(self.name) is None:
            self.trouble = "not installed"
        if self.trouble is not None:
            return
        try:
            found = run_module(self.module, *(self.arguments or (str(self.repeats),)))
        except ProgramError as error:
            self.facts, self.trouble = None, f"failed ({error})"
            return
        if self.facts is None or found["us_per_step"] < self.facts["us_per_step"]:
            self.facts = found


def exudyn(repeats: int) -> Peer:
    return Peer("exudyn", "livens.bench.peers.exudyn_four_bar", repeats)


def mujoco(repeats: int) -> Peer:
    return Peer("mujoco", "livens.bench.peers.mujoco_four_bar", repeats)
