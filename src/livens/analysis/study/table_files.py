"""Table files: CSV and Parquet."""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from livens.errors import InputError, MissingExtraError, explain_call_errors, suggestion

SUFFIXES = (".csv", ".parquet")


def check_target(path: Path, *, force: bool = False) -> None:
    """Raise an InputError before a long computation if a table cannot be written to the path."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"a table cannot be written as '{path.suffix or path}'{suggestion(path.suffix, SUFFIXES)}")
    if path.is_dir() or not path.parent.is_dir():
        reason = "it is a folder" if path.is_dir() else f"the folder '{path.parent}' does not exist"
        raise InputError(f"cannot write the table '{path}': {reason}")
    if path.exists() and not force:
        raise InputError(f"the file '{path}' exists already: choose another name, or replace it with --force")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write the table '{path}': no permission to write in '{path.parent}'")
    if path.suffix.lower() == ".parquet":
        _pyarrow()


@explain_call_errors
def write_table(rows: Sequence[Mapping[str, object]], path: str | Path, *, force: bool = False) -> Path:
    """Write rows with named columns to a file, atomically.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the table, values by column name.
    path : str or Path
        File with the suffix ``.csv`` or ``.parquet``.
    force : bool, default False
        Replace an existing file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the suffix is unknown, or if the file exists or cannot be written.
    """
    path = Path(path)
    check_target(path, force=force)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.suffix.lower() == ".csv":
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, columns, restval="")
                writer.writeheader()
                writer.writerows(rows)
        else:
            arrow, parquet = _pyarrow()
            table = arrow.table({name: [row.get(name) for row in rows] for name in columns})
            parquet.write_table(table, temporary)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write the table '{path}': {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _pyarrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("a Parquet table (.csv needs nothing)", "study") from None
