"""`ctrlmgr rbac`: prints the RBAC rights that an app uses, as YAML that can be applied."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctrlmgr.errors import SettingsError

if TYPE_CHECKING:
    from ctrlmgr.framework.app import App
    from ctrlmgr.framework.app_permissions import Right


@click.command(short_help="Print the RBAC rights that an app uses, as objects to apply.")
@click.argument("place", metavar="MODULE:NAME|FILE")
@click.option(
    "--tests",
    multiple=True,
    metavar="PATH",
    help="Run these tests with pytest, and add the rights that the app uses in the tests; may be repeated.",
)
@click.option(
    "--name",
    default="",
    metavar="NAME",
    help=("The name of the ServiceAccount and of the roles; by default the app's name."),
)
@click.option(
    "--namespace", default="default", metavar="NS", show_default=True, help="The namespace in which the app runs."
)
@click.option(
    "--within",
    default="",
    metavar="NS",
    help=("Grant the rights in this namespace only, for apps that run with `ctrlmgr run --namespace`."),
)
@click.option("--no-definitions", is_flag=True, help="Omit the rights to create the definitions of the app's kinds.")
@click.option(
    "--image", default="", metavar="IMAGE", help=("Also print a Deployment that runs the app from this image.")
)
def rbac(
    place: str, tests: tuple[str, ...], name: str, namespace: str, within: str, no_definitions: bool, image: str
) -> None:
    """Print a ServiceAccount with the rights that an app uses, as YAML.

    The command derives the rights from the declarations of the app's controllers. Rights for deletions, and for writes
    of kinds that no controller lists in owns=, cannot be derived from declarations. The option --tests observes these
    rights in the app's tests, which use `ctrlmgr.testing.Harness`. An app with admission functions also gets the rights
    to register its webhooks; --image adds the Service of the webhooks.

    \b
    ctrlmgr rbac shop:app --tests tests --namespace shop | kubectl apply -f -
    ctrlmgr rbac shop:app --tests tests --image registry.example.com/shop:1 > deploy.yaml
    """
    import yaml

    from ctrlmgr.framework.app_loading import load_app
    from ctrlmgr.framework.app_permissions import declared_rights, deployed, manifests, webhook_rules

    if within and not no_definitions:
        raise click.UsageError("--within needs --no-definitions, because definitions have no namespace")
    app = load_app(place, origin="rbac")
    rights = [*declared_rights(app, definitions=not no_definitions), *_observed(app, tests)]
    called = name or app.name
    found = manifests(called, namespace, rights, within=within, webhooks=webhook_rules(app, within))
    found += deployed(called, namespace, image, place, app) if image else []
    click.echo(yaml.safe_dump_all(found, sort_keys=False), nl=False)


def _observed(app: App, tests: tuple[str, ...]) -> list[Right]:
    """Run tests, and return the rights that the app's controllers used in the tests.

    Raises `SettingsError` if the tests fail.
    """
    if not tests:
        return []
    from ctrlmgr.framework.controller_building import descriptors
    from ctrlmgr.testing.observed_rights import load

    users = {each.user for each in descriptors(app)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rights"
        command = [sys.executable, "-m", "pytest", "-q", *tests, "--ctrlmgr-rights", str(file)]
        ended = subprocess.run(command, stdout=sys.stderr.fileno(), check=False)
        if ended.returncode:
            raise SettingsError(
                f"rbac: the tests failed with exit code {ended.returncode}; correct them, or omit --tests"
            )
        return [right for user, right in load(file) if user in users]
