"""What can go wrong, in words for the person who runs it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from livens.results.result import Result


class LivensError(Exception):
    """Anything livens complains about."""


class InputError(LivensError, ValueError):
    """Something given by the user cannot be used: the message says which field and what is allowed."""


class ModelError(InputError):
    """A model function, or the sum of elements, is not what it must be."""


class IntegrationError(LivensError, ArithmeticError):
    """A step did not converge. Everything up to there is in `result`."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


class WriteError(IntegrationError):
    """The result file could not be written any further, as on a full disk. What is in the file is in `result`."""


class Interrupted(KeyboardInterrupt):
    """The run was stopped by Ctrl-C. Everything up to there is in `result`."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


def suggestion(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` if some known name is close to `name`, else the list of known names."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""
