"""Archive of an FMU: platforms, compilation and linking by `ziglang`, and the file."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from livens.errors import InputError
from livens.progress import report_progress
from livens.run.bridges.fmu.description import ModelDescription
from livens.run.bridges.fmu.exported_step import ExportedStep


class Platform(NamedTuple):
    """Target of the compiler for a platform of FMI."""

    target: str  # of the compiler
    suffix: str  # of shared libraries
    cpu: str
    fmi2_name: str = ""  # folder in FMI 2.0


#: Platforms by their FMI names.
PLATFORMS = {
    "x86_64-linux": Platform("x86_64-linux-gnu.2.17", ".so", "x86_64_v3", "linux64"),
    "x86_64-windows": Platform("x86_64-windows-gnu", ".dll", "x86_64_v3", "win64"),
    "x86_64-darwin": Platform("x86_64-macos", ".dylib", "x86_64_v3", "darwin64"),
    "aarch64-darwin": Platform("aarch64-macos", ".dylib", "apple_m1"),
    "aarch64-linux": Platform("aarch64-linux-gnu.2.17", ".so", "generic"),
}
#: C files of the versions of FMI, the main one first.
SOURCES = {"3.0": ("fmi3.c",), "2.0": ("fmi2.c", "fmi3.c")}


def write_fmu(path: Path, step: ExportedStep, platforms: Sequence[str], version: str) -> None:
    """Compile the libraries of all platforms and write the archive."""
    identifier = re.sub(r"\W", "_", path.stem)
    text, h = f"{step.plan.scheme.name}, h = {step.plan.h:g} s", float(step.plan.h)
    description = ModelDescription(path.stem, identifier, step.token, text, h, step.t0, step.variables)
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        (build / "model.h").write_text(step.header(), encoding="utf-8")
        for name in SOURCES[version]:
            (build / name).write_text(files(__package__).joinpath(name).read_text(encoding="utf-8"), "utf-8")
        for name, ir in step.texts.items():
            (build / f"{name}.ll").write_text(ir, encoding="utf-8")
        sources = [SOURCES[version][0], *(f"{name}.ll" for name in step.texts)]
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("modelDescription.xml", description.to_xml(version))
            for platform in platforms:
                report_progress(f"linking the FMU for {platform}")
                library = f"{identifier}{PLATFORMS[platform].suffix}"
                _link(build, sources, library, PLATFORMS[platform])
                name = PLATFORMS[platform].fmi2_name if version == "2.0" else platform
                archive.write(build / library, f"binaries/{name}/{library}")


def _link(build: Path, sources: Sequence[str], library: str, platform: Platform) -> None:
    command = [
        sys.executable, "-m", "ziglang", "cc", "-target", platform.target, f"-mcpu={platform.cpu}", "-O2", "-shared",
        "-fPIC", "-w", "-s", "-o", library, *sources, *([] if "windows" in platform.target else ["-lm"]),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"the FMU cannot be linked for {platform.target}: {done.stderr.strip()[-500:]}")
