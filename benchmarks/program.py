"""Programs in separate processes, which print one line of JSON as their last line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Time limit in s for one program.
_PATIENCE_S = 600

#: Root of the checkout, from which `benchmarks` is imported.
_ROOT = Path(__file__).parents[1]


class ProgramError(RuntimeError):
    """Failure of a program; the message is the last line of its error output."""


def run_module(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run ``python -m module arguments`` and return the JSON object of its last output line."""
    # threads of numerical libraries would compete for the single core
    path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **(environment or {})}
    command = [sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise ProgramError(f"no result within {_PATIENCE_S} s") from None
    try:
        result = json.loads(_last_line(done.stdout)) if done.returncode == 0 else None
    except json.JSONDecodeError:
        result = None
    if not isinstance(result, dict):
        raise ProgramError(_last_line(done.stderr) or f"exit code {done.returncode}")
    return result


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
