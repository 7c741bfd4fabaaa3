"""Defines the arguments that commands about objects share: KIND, NAME, namespace and point in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ctrlmgr.cli import completion
from ctrlmgr.cli.completion import DEFAULT_NAMESPACE
from ctrlmgr.cli.options import configure_logging
from ctrlmgr.encryption import providers_from
from ctrlmgr.errors import NotFound
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.api.resource import Key, Revision
    from ctrlmgr.inspection.database import Database
    from ctrlmgr.inspection.resource_lookup import Named


class Target(NamedTuple):
    """The object that the arguments of a command name."""

    named: Named
    key: Key


def takes_object(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments KIND and NAME, and `-n`, to a command."""
    command = namespace_option(command)
    command = click.argument("name", required=False, shell_complete=completion.object_names)(command)
    return click.argument("kind", shell_complete=completion.kinds)(command)


def namespace_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `-n` (namespace) to a command."""
    text = f"The namespace of the objects; {DEFAULT_NAMESPACE!r} if none is given."
    return click.option("-n", "--namespace", metavar="NAMESPACE", help=text, shell_complete=completion.namespaces)(
        command
    )


def at_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the option `--at` (a point in time) to a command."""
    help_text = f"{text}: a revision, a time, or 10m for ten minutes ago."
    return click.option("--at", metavar="REV|TIME", help=help_text, shell_complete=completion.moments)


@contextmanager
def opened(loaded: Loaded) -> Iterator[Database]:
    """Open for reading the database that the settings name.

    If the block raises `NotFound`, the URL of the log is added to the error.
    """
    from ctrlmgr.inspection.decrypted import open_decrypted

    configure_logging(loaded.settings)
    providers = providers_from(loaded.settings.database.encryption_provider_config)
    with open_decrypted(loaded.settings.database_url, providers) as database:
        try:
            yield database
        except NotFound as error:
            raise NotFound(f"{error} in {queried_log(loaded, database)}; is this the right cluster?") from error


def queried_log(loaded: Loaded, database: Database) -> str:
    """Return the URL of the log that a command reads, with its number of revisions: `sqlite:////… (231 revisions)`."""
    from ctrlmgr.cli.inspect.remote_log import shown_log

    return f"{shown_log(loaded)} ({moment(database, None):,} revisions)"


def moment(database: Database, text: str | None) -> Revision:
    """Return the revision of the point in time in `--at`; if `--at` is not given, the log's newest revision."""
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.inspection import moment_parser

    return moment_parser.resolve(database, text or moment_parser.HEAD, now=SystemClock().now())


def split(kind: str, name: str | None) -> tuple[str, str | None]:
    """Return KIND and NAME; split an argument of the form `KIND/NAME`, which kubectl prints."""
    if name is None and "/" in kind:
        kind, _, name = kind.partition("/")
    return kind, name


def target(database: Database, kind: str, name: str | None, namespace: str | None) -> Target:
    """Return the object that KIND, NAME and the namespace describe; raises `click.UsageError` if there is no name."""
    from ctrlmgr.api.resource import Key
    from ctrlmgr.inspection import resource_lookup

    kind, name = split(kind, name)
    if not name:
        raise click.UsageError("Missing argument 'NAME'.")
    named = resource_lookup.find(database, kind)
    return Target(named, Key((namespace or DEFAULT_NAMESPACE) if named.namespaced else "", name))


def note_compacted(database: Database, revision: Revision) -> None:
    """Print a note for each resource whose state at `revision` is unknown, because its events were compacted."""
    from ctrlmgr.inspection import moment_parser
    from ctrlmgr.logging import escape

    for resource, floor in sorted(moment_parser.floors_above(database, revision).items()):
        click.echo(
            f"note: {escape(resource)} is compacted up to revision {floor}; its earlier objects are omitted", err=True
        )
