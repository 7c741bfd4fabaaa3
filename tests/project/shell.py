"""Creates shell scripts that replace programs, for tests of code that calls programs by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def put_programs(folder: Path, programs: Mapping[str, str]) -> None:
    """Write programs into a folder, given their names and their shell code."""
    for name, lines in programs.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
        program.chmod(0o755)
