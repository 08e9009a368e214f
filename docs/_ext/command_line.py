"""Sphinx extension: reference page of the command line, written from the help texts of the commands."""

from __future__ import annotations

from typing import Any

from gallery import DOCS, write_if_changed


def command_page() -> str:
    """Return the help text of every command as a Markdown page."""
    import typer
    from typer.testing import CliRunner

    from livens.cli import app

    runner = CliRunner(env={"COLUMNS": "88", "TERM": "dumb", "NO_COLOR": "1", "LIVENS_WIDTH": "88"})
    commands = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    lines = [
        "# Command line",
        "",
        "The command `livens` has these subcommands. `livens COMMAND --help` shows the same text.",
        "",
    ]
    for command in commands:
        text = runner.invoke(app, [command, "--help"], prog_name="livens").output.strip("\n")
        lines += [f"## livens {command}", "", "```text", *(line.rstrip() for line in text.splitlines()), "```", ""]
    lines += [
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        "| 0 | success |",
        "| 1 | a guaranteed property or a claim does not hold |",
        "| 2 | invalid input |",
        "| 3 | the integration failed |",
        "| 130 | interrupted by the user |",
        "",
    ]
    return "\n".join(lines)


def setup(app: Any) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    write_if_changed(DOCS / "reference" / "command-line.md", command_page())
    return {"parallel_read_safe": True}
