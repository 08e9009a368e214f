"""Other codes for the same problems, each in a separate process."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

from benchmarks.program import ProgramError, run_module


@dataclass
class OtherCode:
    """Other code, run `repeats` times per round with each of its settings.

    `info` is the result of its fastest run; `error` is the reason if there is none.
    """

    name: str
    module: str
    repeats: int = 1
    arguments: tuple[str, ...] = ()
    info: dict[str, Any] | None = None
    error: str | None = None

    def run_round(self) -> None:
        """Run the code, if it is installed and has not failed before."""
        if importlib.util.find_spec(self.name) is None:
            self.error = "not installed"
        if self.error is not None:
            return
        try:
            result = run_module(self.module, *(self.arguments or (str(self.repeats),)))
        except ProgramError as error:
            self.info, self.error = None, f"failed ({error})"
            return
        if self.info is None or result["us_per_step"] < self.info["us_per_step"]:
            self.info = result


def exudyn(repeats: int) -> OtherCode:
    return OtherCode("exudyn", "benchmarks.peers.exudyn_four_bar", repeats)


def mujoco(repeats: int) -> OtherCode:
    return OtherCode("mujoco", "benchmarks.peers.mujoco_four_bar", repeats)
