"""Provides the log of a remote server: the options that select the server, and the local copy of the log.

Guarantees: the output is the same as on the server's machine, but contains only the objects that the user may list. For
each server and login, there is a separate copy below the data directory. Only the user of the data directory can read
the copies.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import click

from ctrlmgr.cli.inspect import current_cluster
from ctrlmgr.cli.options import ENCRYPTED_DATABASE, configure_logging, takes_settings
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.api.resource import Revision
    from ctrlmgr.inspection.copying import Fetch, Tell
    from ctrlmgr.settings.kubeconfig import Access

FOLDER = "copies"
"""The directory for copies, within the data directory."""
_PATH = "/ui/api/log"
_SERVER = "--server "
"""If a local copy is used, the source of the setting database.url begins with this prefix; the server's URL follows."""
_FILE = click.Path(dir_okay=False, path_type=Path)
_LOCAL = ("localhost", "127.0.0.1", "::1")


class Named(NamedTuple):
    """The values of the options that name a server and the credentials for the server."""

    server: str
    token_file: Path | None
    kubeconfig: Path | None
    context: str


def takes_log(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add options to a command that select a log in a database or on a server.

    The command gets the `Loaded` settings as its first argument. If the user gives no option that names a log,
    `current_cluster` chooses the log. If the log is on a server, the settings name the local copy of this log, and the
    folder of the copy as the data directory. If the command can read the file of the server's log, the settings name
    this file instead of a copy.
    """

    @functools.wraps(function)
    def command(
        loaded: Loaded,
        *,
        server: str | None,
        token_file: Path | None,
        kubeconfig: Path | None,
        context: str | None,
        **arguments: Any,
    ) -> Any:
        if not (server or token_file or kubeconfig or context):
            return function(_implied(loaded), **arguments)
        if click.get_current_context().params.get("flag_database_url"):
            raise click.UsageError("--database and --server exclude each other")
        if not server and not (kubeconfig or context):
            raise click.UsageError("--token-file needs --server")
        if server:
            return function(
                _copied(loaded, Named(_checked(server), token_file, kubeconfig, context or "")), **arguments
            )
        access = current_cluster.access_named(kubeconfig, context or "")
        return function(_read(loaded, access, token_file, kubeconfig, context or ""), **arguments)

    decorated: Callable[..., Any] = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return takes_settings(*ENCRYPTED_DATABASE)(decorated)


_OPTIONS = (
    click.option(
        "--server",
        metavar="URL",
        help=("Read the log of the server at this URL, limited to the objects that you may list."),
    ),
    click.option(
        "--token-file",
        type=_FILE,
        metavar="FILE",
        help=("A file with the bearer token for the server whose log is read."),
    ),
    click.option(
        "--kubeconfig",
        type=_FILE,
        metavar="FILE",
        help="The kubeconfig with the credentials and, unless --server is given, the server; by default kubectl's.",
    ),
    click.option(
        "--context",
        metavar="NAME",
        help="The context of the kubeconfig; by default the current context.",
    ),
)


def is_copy(loaded: Loaded) -> bool:
    """Return whether the settings name a local copy of a server's log."""
    return loaded.origins.get("database.url", "").startswith(_SERVER)


def shown_log(loaded: Loaded) -> str:
    """Return the log's name for messages: the server's URL for a copy, otherwise the database's URL."""
    from ctrlmgr.logging import escape, mask

    if is_copy(loaded):
        return escape(loaded.origins["database.url"].removeprefix(_SERVER))
    return escape(mask(loaded.settings.database_url))


def _checked(server: str) -> str:
    parts = urlsplit(server)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise click.UsageError(f"--server is a URL such as https://10.0.0.1:6443, not {server!r}")
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        raise click.UsageError("--server: a token sent without TLS can be read by others; write https://")
    return server.rstrip("/")


def _implied(loaded: Loaded) -> Loaded:
    """Return settings that name the log of kubectl's current cluster.

    If the settings already name a log, the unchanged settings are returned.
    """
    access = current_cluster.access_implied(loaded)
    return loaded if access is None else _read(loaded, access, None, None, "")


def _read(loaded: Loaded, access: Access, token_file: Path | None, kubeconfig: Path | None, context: str) -> Loaded:
    """Return settings that name the log of a kubeconfig's cluster: the log's file, or a local copy of the log."""
    if token_file is None and (found := current_cluster.local(loaded, access)) is not None:
        return found
    return _copied(loaded, Named(access.server, token_file, kubeconfig, context))


def _copied(loaded: Loaded, named: Named) -> Loaded:
    """Update the local copy of a server's log, and return settings that name the copy."""
    from random import SystemRandom

    from ctrlmgr.clock import SystemClock
    from ctrlmgr.inspection.copying import bring_up

    configure_logging(loaded.settings)
    place = hashlib.sha256("\0".join(map(str, named)).encode()).hexdigest()[:32]
    folder = loaded.settings.data_path / FOLDER / place
    path = folder / "log.db"
    with _progress(named.server) as tell:
        hidden = bring_up(path, _fetch(named), clock=SystemClock(), random=SystemRandom(), tell=tell)
    if hidden:
        click.echo(f"note: {hidden:,} events on objects that you may not list are omitted", err=True)
    database = replace(loaded.settings.database, url=f"sqlite:///{path}", anchor="", anchor_key="")
    settings = replace(loaded.settings, database=database, data_dir=str(folder))
    return loaded._replace(settings=settings, origins={**loaded.origins, "database.url": f"{_SERVER}{named.server}"})


def _fetch(named: Named) -> Fetch:
    """Return a function that requests a page of events from the server; the function's errors say what to do."""
    from ctrlmgr.errors import Forbidden, NotFound, ServiceUnavailable, Unauthorized
    from ctrlmgr.recording.capture.cluster_client import Cluster

    access = _access(named)
    cluster, origin = Cluster(access, program="ctrlmgr"), named.token_file or access.origin

    def fetch(query: Mapping[str, str]) -> bytes:
        try:
            return cluster.request("GET", _PATH, query)
        except Unauthorized as error:
            raise Unauthorized(
                f"{named.server} does not accept the credentials of {origin}; choose others with --token-file, "
                "--kubeconfig or --context"
            ) from error
        except Forbidden as error:
            needed = f'a ClusterRole with verbs ["get"] on nonResourceURLs ["{_PATH}"] allows it'
            raise Forbidden(f"{error}; {needed}") from error
        except NotFound as error:
            raise NotFound(f"{named.server} has no {_PATH}: it is not a ctrlmgr server, or an older version") from error
        except ServiceUnavailable as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise ServiceUnavailable(
                    f"{named.server} has a certificate that the authority of the kubeconfig did not sign; "
                    "pass the kubeconfig that the server wrote with --kubeconfig"
                ) from error
            raise

    return fetch


def _access(named: Named) -> Access:
    """Return the URL of the server, its authorities, and the user's certificate or token.

    The authorities and the user come from the kubeconfig. Raises `SettingsError`.
    """
    from ctrlmgr.settings.kubeconfig import Access, default_files, load, trusting

    files = [named.kubeconfig] if named.kubeconfig else default_files(os.environ, Path.home())
    is_tls = named.server.startswith("https:")
    if named.kubeconfig or any(file.exists() for file in files):
        access = load(files, named.context)
    elif named.token_file:
        access = Access(named.server, "", None, "", {})
    else:
        raise SettingsError("there are no credentials for the server; give --kubeconfig or --token-file")
    certificate = b"" if named.token_file else access.certificate
    trust = trusting(access.authority, certificate, access.is_checked) if is_tls else None
    user = {"token": _token(named.token_file)} if named.token_file else access.user
    return replace(access, server=named.server, context=trust, user=user, certificate=certificate)


def _token(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--token-file: {file} cannot be read: {error}") from error


@contextmanager
def _progress(server: str) -> Iterator[Tell]:
    """Show a progress line on stderr if stderr is a terminal; yields the function that updates the line."""
    if not sys.stderr.isatty():
        yield lambda revision, head: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"copying the log of {server} …") as line:

        def tell(revision: Revision, head: Revision) -> None:
            line.update(f"copying the log of {server}: revision {revision:,} of {head:,}")

        yield tell
