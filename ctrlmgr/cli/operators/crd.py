"""`ctrlmgr crd`: prints or applies the CustomResourceDefinitions of kinds that are Python classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ctrlmgr.cli.options import output_option

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Print or apply the CustomResourceDefinitions of an app's kinds.")
@click.argument("places", nargs=-1, required=True, metavar="MODULE:NAME...")
@click.option(
    "--apply", "applies", is_flag=True, help=("Apply the definitions to a cluster, and print the result of each one.")
)
@click.option("--kubeconfig", type=_FILE, metavar="FILE", help="The kubeconfig of the cluster; by default kubectl's.")
@click.option(
    "--context", default="", metavar="NAME", help="The context of the kubeconfig; by default the current context."
)
@output_option("yaml", "json")
def crd(places: tuple[str, ...], applies: bool, kubeconfig: Path | None, context: str, output: str) -> None:
    """Print the CustomResourceDefinitions of given classes, or of all kinds of an app.

    --apply creates CustomResourceDefinitions and updates existing ones. If an existing CustomResourceDefinition
    contradicts its class, the command does not change it, prints the contradiction, and fails.

    \b
    ctrlmgr crd shop:Shop
    ctrlmgr crd shop:app > definitions.yaml
    ctrlmgr crd shop:app --apply
    """
    from ctrlmgr.framework.app_loading import load_kinds
    from ctrlmgr.framework.install import checked_definition

    apps = load_kinds(places, origin="crd")
    if applies:
        _apply(apps, kubeconfig, context)
        return
    if kubeconfig or context:
        raise click.UsageError("--kubeconfig and --context need --apply")
    _print([checked_definition(kind) for app in apps for kind in app.kinds], output)


def _print(definitions: list[dict[str, Any]], output: str) -> None:
    import yaml

    if output == "yaml":
        click.echo(yaml.safe_dump_all(definitions, sort_keys=False, allow_unicode=True), nl=False)
        return
    listed = {"apiVersion": "v1", "kind": "List", "items": definitions}
    click.echo(json.dumps(definitions[0] if len(definitions) == 1 else listed, indent=2, ensure_ascii=False))


def _apply(apps: list[Any], kubeconfig: Path | None, context: str) -> None:
    from ctrlmgr.cli.recordings.record import access_of
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.framework.remote.controller_process import install_definitions

    stored = {each.name for each in install_definitions(access_of(kubeconfig, context), apps, clock=SystemClock())}
    for name in dict.fromkeys(str(kind.resource) for app in apps for kind in app.kinds):
        click.echo(f"{name} {'applied' if name in stored else 'unchanged'}")
