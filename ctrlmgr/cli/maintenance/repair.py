"""`ctrlmgr repair`: repairs the allocations of ClusterIPs and node ports, or only reports errors in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from random import SystemRandom
from socket import gethostname
from typing import TYPE_CHECKING, NamedTuple

import click

from ctrlmgr.cli import ExitCode
from ctrlmgr.cli.options import DATABASE, opened_log, output_option, takes_settings
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.client import EngineClient, LogClient
    from ctrlmgr.controllers.repair.controller import HandledFinding
    from ctrlmgr.controllers.repair.repair_findings import Finding
    from ctrlmgr.eventlog import EventLog


class _Row(NamedTuple):
    """One error in the allocations, as a row of the output."""

    REASON: str
    OBJECT: str
    VALUE: str
    OUTCOME: str
    MESSAGE: str


@click.command(short_help="Repair the allocations of ClusterIPs and node ports.")
@takes_settings(*DATABASE, "service.cluster_ip_range", "service.node_port_range")
@click.option("--dry-run", is_flag=True, help="Print the errors and the possible repairs, and change nothing.")
@output_option("table", "json")
def repair(loaded: Loaded, dry_run: bool, output: str) -> int:
    """Compare the Services with the allocations of ClusterIPs and node ports, and repair the allocations.

    `ctrlmgr serve` repairs allocations in the same way at its start and every three minutes; a server may run at the
    same time. Missing and wrong allocations are corrected, and unused allocations are released. Errors that need a
    decision, such as two Services with the same address, are reported in the output and as Events. The exit code is 1
    if errors remain that need a decision. If --dry-run is given, the exit code is 1 if there are any errors.

    \b
    ctrlmgr repair --dry-run
    ctrlmgr repair --database postgresql://ctrlmgr@db.example.com/ctrlmgr -o json
    """
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.controllers.events.recorder import EventBroadcaster
    from ctrlmgr.controllers.repair.controller import cluster_ip_repair, node_port_repair
    from ctrlmgr.kinds.allocators.service_ranges import Ranges

    service = loaded.settings.service
    ranges = Ranges.parse(service.cluster_ip_range, service.node_port_range)
    with opened_log(loaded) as log:
        broadcaster = EventBroadcaster(clock=SystemClock(), random=SystemRandom(), host=gethostname())
        client = _client(log)
        dependencies = (log, ranges, broadcaster, client)
        addresses, ports = cluster_ip_repair(*dependencies), node_port_repair(*dependencies)
        if dry_run:
            findings = (*addresses.findings(), *ports.findings())
            rows = [_row(finding, finding.action.value) for finding in findings]
        else:
            rows = [*_repaired(partial(addresses.run, client)), *_repaired(partial(ports.run, _internal(log)))]
            broadcaster.close()
    _write(rows, output, dry_run=dry_run)
    is_left = rows if dry_run else [row for row in rows if row.OUTCOME == "reported"]
    return ExitCode.FAILED if is_left else ExitCode.OK


def _internal(log: EventLog) -> LogClient:
    """Return a client that writes the allocations of node ports, which are not API objects."""
    from ctrlmgr import __version__
    from ctrlmgr.authentication.user import API_SERVER
    from ctrlmgr.client import LogClient
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.engine.generated_names import new_uid
    from ctrlmgr.eventlog import Author

    random = SystemRandom()
    return LogClient(
        log,
        author=Author(API_SERVER.name, f"ctrlmgr-repair/{__version__}"),
        clock=SystemClock(),
        new_uid=lambda: new_uid(random),
    )


def _client(log: EventLog) -> EngineClient:
    """Return a client that writes IPAddresses and Events with the same checks as the API."""
    from ctrlmgr import __version__
    from ctrlmgr.admission.plugin_registry import default_chain
    from ctrlmgr.authentication.user import API_SERVER
    from ctrlmgr.client import ControllerRunner, EngineClient, LogState
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.engine.request_options import Requester
    from ctrlmgr.engine.write_engine import WriteEngine
    from ctrlmgr.kinds.builtin import builtin_kinds

    clock, state = SystemClock(), LogState(log)
    kinds = builtin_kinds()
    admission = default_chain(kinds, clock)
    engine = WriteEngine(kinds, state, clock=clock, random=SystemRandom(), admission=admission)
    requester = Requester(API_SERVER.name, API_SERVER.groups, f"ctrlmgr-repair/{__version__}")
    return EngineClient(engine, ControllerRunner(log, state, lambda revision, patience: True), requester)


def _repaired(run: Callable[[], Sequence[HandledFinding]]) -> Iterator[_Row]:
    """Repeat the repair until every leaked allocation has been found in enough rounds, and is released.

    Each round reads a consistent state at one revision, so no pause is needed between rounds.
    """
    from ctrlmgr.controllers.repair.controller import SIGHTINGS, Outcome

    for turn in range(1, SIGHTINGS + 1):
        handled = run()
        is_last = turn == SIGHTINGS or all(each.outcome is not Outcome.FLAGGED for each in handled)
        for each in handled:
            if is_last or each.outcome in (Outcome.REPAIRED, Outcome.RELEASED):
                yield _row(each.finding, each.outcome.value)
        if is_last:
            return


def _row(finding: Finding, outcome: str) -> _Row:
    subject = f"{finding.subject.resource} {finding.subject.key}"
    return _Row(finding.reason, subject, finding.value, outcome, finding.message)


def _write(rows: Sequence[_Row], output: str, *, dry_run: bool) -> None:
    import msgspec

    if output == "json":
        findings = [{name.lower(): cell for name, cell in row._asdict().items()} for row in rows]
        click.echo(msgspec.json.format(msgspec.json.encode({"dryRun": dry_run, "findings": findings}), indent=2))
    elif rows:
        for line in _table([_Row(*_Row._fields), *rows]):
            click.echo(line)
    else:
        click.echo("ok: no errors")


def _table(rows: Sequence[_Row]) -> Iterable[str]:
    from ctrlmgr.logging import escape

    cells = [[escape(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
