"""`ctrlmgr version`: prints the versions of the programs, and the address of the documentation."""

from __future__ import annotations

import json
import platform
import sqlite3
from pathlib import Path

import click

from ctrlmgr import __version__
from ctrlmgr.cli.options import output_option


def documentation() -> Path:
    """Return the directory of the documentation, which is in the package or, in a checkout, beside the package."""
    package = Path(__file__).parents[1]
    carried = package / "docs"
    return carried if carried.is_dir() else package.parent / "docs"


@click.command(short_help="Print the versions of ctrlmgr, Python and SQLite.")
@output_option("text", "json")
def version(output: str) -> None:
    """Print the versions of ctrlmgr, Python and SQLite, and the directory of the documentation."""
    versions = {"ctrlmgr": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    versions["documentation"] = str(documentation())
    if output == "json":
        click.echo(json.dumps(versions))
    else:
        click.echo("\n".join(f"{name} {number}" for name, number in versions.items()))
