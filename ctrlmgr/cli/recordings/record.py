"""`ctrlmgr record`: records a cluster or a log into a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctrlmgr.cli.options import LOG, Duration, configure_logging, opened_log, takes_settings
from ctrlmgr.cli.signal_handling import stop_on_signal
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.api.resource import Resource
    from ctrlmgr.eventlog.sqllog import SQLLog
    from ctrlmgr.recording.capture.cluster_client import Cluster, Served
    from ctrlmgr.recording.capture.cluster_recorder import State
    from ctrlmgr.recording.capture.recording_continuation import RecordingEnd
    from ctrlmgr.recording.capture.redaction import Redaction
    from ctrlmgr.recording.capture.rotation import Files
    from ctrlmgr.settings.kubeconfig import Access

DEFAULT_RESOURCES = "namespaces,nodes,services,pods,endpoints,endpointslices,leases,events"
_FILE = click.Path(dir_okay=False, path_type=Path)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}


class _Size(click.ParamType[int]):
    """A parameter type for sizes such as `100MB` or `1Gi`, in bytes."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a size; fail with a usage error if the argument is not a size."""
        if isinstance(value, int):
            return value
        text = str(value).upper().removesuffix("B")
        number = text.rstrip("KMGI")
        unit = text[len(number) :]
        if not number.isdecimal() or unit not in _UNITS:
            self.fail(f"{value!r} is not a size; write 100MB or 1Gi")
        return int(number) * _UNITS[unit]


@click.command(short_help="Record the changes in a cluster, or in a log, into a file.")
@takes_settings(*LOG, "database.encryption_provider_config")
@click.option("--kubeconfig", type=_FILE, metavar="FILE", help="The kubeconfig of the cluster; by default kubectl's.")
@click.option(
    "--context", default="", metavar="NAME", help="The context of the kubeconfig; by default the current context."
)
@click.option("--database", metavar="URL", help="Record this log up to its newest event, instead of a cluster.")
@click.option("-n", "--namespace", default="", metavar="NAMESPACE", help="Record only objects in this namespace.")
@click.option(
    "--resources",
    metavar="LIST",
    help=(
        f'The resources to record, "*" for all resources. The default for a cluster is {DEFAULT_RESOURCES}; for a '
        "log, all resources are recorded."
    ),
)
@click.option(
    "-o",
    "--output",
    type=_FILE,
    required=True,
    metavar="FILE",
    help="The file to write; it is compressed if its name ends in .gz.",
)
@click.option(
    "--redact",
    multiple=True,
    metavar="RULE",
    help="In addition to Secrets, mask the values of this field, for example pods:spec.containers.env.value.",
)
@click.option("--no-redact", is_flag=True, help="Do not mask the data of Secrets.")
@click.option(
    "--rotate",
    type=_Size(),
    default=0,
    metavar="SIZE",
    help=("Start a new file when the current file reaches this size."),
)
@click.option("--append", "goes_on", is_flag=True, help="Append to an existing recording.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--for",
    "period",
    type=Duration(),
    metavar="DURATION",
    help=("Stop recording after this duration instead of at Ctrl-C."),
)
@click.option("--no-progress", is_flag=True, help="Do not show a progress line.")
def record(
    loaded: Loaded,
    kubeconfig: Path | None,
    context: str,
    database: str | None,
    namespace: str,
    resources: str | None,
    output: Path,
    redact: tuple[str, ...],
    no_redact: bool,
    rotate: int,
    goes_on: bool,
    force: bool,
    period: float | None,
    no_progress: bool,
) -> None:
    """Record the changes in a cluster into a file that `ctrlmgr replay` reads, until Ctrl-C.

    The command lists and watches the chosen resources, and writes their changes in the order of the cluster's
    revisions. The recording contains masked values instead of the data of Secrets. If --rotate splits a recording into
    several files, each file can be replayed alone. An existing file is changed only if --append or --force is given.

    \b
    ctrlmgr record -o today.jsonl.gz
    ctrlmgr record --context prod -n shop --resources pods,svc,ep --for 10m -o shop.jsonl.gz
    ctrlmgr record --database sqlite:///ctrlmgr.db -o log.jsonl.gz
    """
    from random import SystemRandom

    from ctrlmgr.clock import SystemClock
    from ctrlmgr.recording.capture.cluster_recorder import Recorder
    from ctrlmgr.recording.capture.redaction import DEFAULT, Redaction

    if database and (kubeconfig or context or period is not None):
        raise click.UsageError("--database records a log; --kubeconfig, --context and --for need a cluster")
    redaction = Redaction([*(() if no_redact else DEFAULT), *redact])
    ending = _ending(output, goes_on=goes_on, force=force)
    if database:
        settings = replace(loaded.settings, database=replace(loaded.settings.database, url=database))
        _export(loaded._replace(settings=settings), output, rotate, namespace, resources, redaction, ending)
        return
    configure_logging(loaded.settings)
    access = access_of(kubeconfig, context)
    cluster, served = _chosen(access, namespace, (resources or DEFAULT_RESOURCES).split(","), ending)
    with _files(output, rotate, ending) as files:
        follows = "*" in (resources or "").split(",") and not namespace
        recorder = Recorder(
            cluster,
            served,
            files,
            clock=SystemClock(),
            random=SystemRandom(),
            namespace=namespace,
            redaction=redaction,
            follows=follows,
            ending=ending,
        )
        with stop_on_signal() as stop, _progress(hidden=no_progress) as tell:
            late = recorder.run(stop, period, tell)
    for resource in late:
        click.echo(f"warning: the last changes of {resource} before the end may be missing", err=True)
    _say_done(files)


def access_of(kubeconfig: Path | None, context: str) -> Access:
    """Return the URL and the credentials of a cluster, which is chosen as kubectl chooses it.

    Raises `SettingsError` if the kubeconfig is unusable.
    """
    from ctrlmgr.settings.kubeconfig import default_files, in_cluster, load

    files = [kubeconfig] if kubeconfig else default_files(os.environ, Path.home())
    if not kubeconfig and not any(file.exists() for file in files) and (access := in_cluster(os.environ)):
        return access
    return load(files, context)


def _ending(output: Path, *, goes_on: bool, force: bool) -> RecordingEnd | None:
    """Return the end of the existing file that the recording continues; None if the file is new.

    Raises `SettingsError`.
    """
    from ctrlmgr.recording.capture.recording_continuation import read_ending

    if goes_on and force:
        raise click.UsageError(
            "--append and --force exclude each other: --append keeps the content of the file, --force removes it"
        )
    if not output.exists() or force:
        return None
    if not goes_on:
        raise SettingsError(f"{output} exists: --append continues it, --force overwrites it")
    return read_ending(output) if output.stat().st_size else None


def _chosen(
    access: Access, namespace: str, names: list[str], ending: RecordingEnd | None
) -> tuple[Cluster, list[Served]]:
    from ctrlmgr.recording.capture.cluster_client import Cluster
    from ctrlmgr.recording.capture.cluster_recorder import choose
    from ctrlmgr.recording.capture.recording_continuation import check_chosen

    cluster = Cluster(access)
    served = choose(cluster.served(), names)
    if namespace:
        served = [each for each in served if each.namespaced]
    if not served:
        raise SettingsError("--resources: none of these resources is namespaced, which -n requires")
    if ending is not None:
        check_chosen(ending, {each.resource for each in served}, namespace)
    return cluster, served


def _files(output: Path, rotate: int, ending: RecordingEnd | None) -> Files:
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.recording.capture.rotation import Files

    return Files(output, SystemClock(), limit=rotate, ending=ending)


def _export(
    loaded: Loaded,
    output: Path,
    rotate: int,
    namespace: str,
    resources: str | None,
    redaction: Redaction,
    ending: RecordingEnd | None,
) -> None:
    from ctrlmgr.api.object import Object
    from ctrlmgr.recording.capture.export import history, is_api_object
    from ctrlmgr.recording.capture.recording_continuation import check_log

    names = None if resources in (None, "*") else set((resources or "").split(","))

    def is_named(resource: Resource) -> bool:
        return names is None or str(resource) in names or resource.plural in names

    def is_selected(obj: Object) -> bool:
        resource = obj.resource
        return is_named(resource) and is_api_object(resource) and (not namespace or obj.namespace == namespace)

    with opened_log(loaded) as log:
        _require_keys(log, is_named)
        start = None
        if ending is not None:
            check_log(ending, log, is_selected)
            start = ending.revision
        with _files(output, rotate, ending) as files:
            for change in history(log, is_selected, start=start, opening=ending is None):
                files.write(change._replace(object=redaction.applied(change.object)))
    _say_done(files)


def _require_keys(log: SQLLog, is_named: Callable[[Resource], bool]) -> None:
    """Raise `SettingsError` if chosen resources are encrypted, but no keys are given.

    The resources must be decrypted, because ciphertext cannot be replayed.
    """
    from ctrlmgr.api.resource import Resource

    resources = {key.resource for key in log.data_keys.all() if not key.is_for_texts} if log.codec is None else set()
    if encrypted := sorted(each for each in resources if is_named(Resource.parse(each))):
        raise SettingsError(
            f"the log contains encrypted objects ({', '.join(encrypted)}); give their keys with "
            "--encryption-provider-config, or choose other resources with --resources"
        )


def _say_done(files: Files) -> None:
    names = ", ".join(str(path) for path in files.paths)
    click.echo(f"{files.changes:,} changes up to revision {files.revision} are in {names}", err=True)


@contextmanager
def _progress(*, hidden: bool) -> Iterator[Callable[[State], None] | None]:
    """Show a progress line on stderr if stderr is a terminal; yields a function that updates the line."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("listing …") as line:

        def tell(state: State) -> None:
            waiting = f", {state.waiting:,} wait for slower watches" if state.waiting else ""
            size = f"{state.size / 1e6:.1f} MB"
            line.update(
                f"recording: {state.changes:,} changes up to revision {state.revision}, {size}{waiting}; Ctrl-C ends"
            )

        yield tell
