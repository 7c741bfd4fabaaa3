"""`ctrlmgr version`: what runs here."""

from __future__ import annotations

import json
import platform
import sqlite3

import click

from ctrlmgr import __version__
from ctrlmgr.cli.options import output_option


@click.command(short_help="Print what runs here.")
@output_option("text", "json")
def version(output: str) -> None:
    """Print the versions of ctrlmgr and of what it stands on."""
    versions = {"ctrlmgr": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    if output == "json":
        click.echo(json.dumps(versions))
    else:
        click.echo("\n".join(f"{name} {number}" for name, number in versions.items()))
