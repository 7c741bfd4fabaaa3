"""`ctrlmgr new`: creates a project for a new operator."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Create a project for an operator of your own.")
@click.argument("name")
@click.option(
    "--group",
    default="example.com",
    metavar="GROUP",
    show_default=True,
    help=("The API group of the kind that the operator defines."),
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The directory of the project; by default a new directory with the project's name.",
)
@click.option(
    "--deploy", is_flag=True, help=("Also create a Dockerfile, and a Deployment with the operator's RBAC rights.")
)
def new(name: str, group: str, directory: Path | None, deploy: bool) -> None:
    """Create a small project with a kind, a controller, and tests that pass.

    The project's pyproject.toml requires this installation of ctrlmgr: the same directory, wheel or commit.

    \b
    ctrlmgr new shop
    ctrlmgr new shop --deploy
    ctrlmgr new corner-shop --group shops.example.com --directory projects/shop
    """
    from ctrlmgr.framework.project import write

    folder = directory or Path(name)
    for path in write(folder, name, group, deploy=deploy):
        click.echo(f"wrote {path}")
    click.echo(f"run its tests: cd {folder} && pip install -e '.[test]' && python -m pytest -q")
