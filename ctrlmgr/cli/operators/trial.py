"""`ctrlmgr trial`: puts an operator through the failures of production, and reports what it does wrong."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctrlmgr.cli.options import Duration, given_flags, output_option, takes_settings
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import Loaded
from ctrlmgr.trial.perturbation_plan import FAMILIES

if TYPE_CHECKING:
    from ctrlmgr.clock import Clock
    from ctrlmgr.trial.trial_runner import TrialResult

_FILE = click.Path(dir_okay=False, path_type=Path)
_USER = "trial-operator"
_MASTERS = "system:masters"
_PREPARED = "prepared"
_NODES = "2"


@click.command(short_help="Put an operator through the failures of production.")
@takes_settings("controllers.nodes")
@click.option("--command", required=True, metavar="COMMAND", help="The shell command that runs the operator.")
@click.option(
    "--setup",
    multiple=True,
    metavar="FILE,…",
    help="Manifests to apply before the operator starts, such as its definitions and roles; may be repeated.",
)
@click.option("--scenario", "scenario_file", type=_FILE, required=True, metavar="FILE", help="The steps of the user.")
@click.option(
    "--service-account",
    default="",
    metavar="NS/NAME",
    help="The operator's ServiceAccount, whose rights the setup grants; by default the operator has all rights.",
)
@click.option(
    "--perturbations",
    "families",
    default=",".join(FAMILIES),
    metavar="NAME,…",
    show_default=True,
    help="The kinds of perturbations.",
)
@click.option("--plan", "plan_file", type=_FILE, metavar="FILE", help="Inject only the perturbations of this plan.")
@click.option("--jobs", type=click.IntRange(1, 64), metavar="N", help="The number of runs at once. [default: CPUs]")
@click.option(
    "--quiet",
    type=Duration(),
    default="3s",
    show_default=True,
    metavar="DURATION",
    help="The log is quiet if nothing changes for this time.",
)
@click.option(
    "--recovery",
    type=Duration(),
    default="20s",
    show_default=True,
    metavar="DURATION",
    help="The longest time without changes until the operator tries again; longer than its longest retry delay.",
)
@click.option(
    "--limit",
    type=Duration(),
    default="120s",
    show_default=True,
    metavar="DURATION",
    help="The maximum duration of each wait until the log is quiet.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The directory for the runs' logs, which must not exist; by default a new temporary directory.",
)
@click.option("--keep-all", is_flag=True, help="Also keep the logs of runs without findings.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write the findings as JUnit's XML to this file.")
@click.option("--sarif", type=_FILE, metavar="FILE", help="Write the findings as SARIF to this file.")
@output_option("text", "json")
# settings are checked before any server starts
def trial(
    loaded: Loaded,
    command: str,
    setup: tuple[str, ...],
    scenario_file: Path,
    service_account: str,
    families: str,
    plan_file: Path | None,
    jobs: int | None,
    quiet: float,
    recovery: float,
    limit: float,
    folder: Path | None,
    keep_all: bool,
    junit: Path | None,
    sarif: Path | None,
    output: str,
) -> int:
    """Put an operator through the failures of production, and report what it does wrong.

    The operator is any program that uses its KUBECONFIG. It runs unmodified against a new control plane, while the
    steps of the scenario are done. Two clean runs show what the operator does; each further run has one plan of
    perturbations, such as a crash after one of the operator's writes. A run whose end differs from the clean runs is a
    finding. The log of each run with a finding is kept. The exit code is 0 without findings, and 1 with findings.

    \b
    ctrlmgr trial --command './my-operator' --setup crds.yaml,rbac.yaml --scenario scenario.yaml
    ctrlmgr trial --command 'kopf run operator.py' --setup crd.yaml --scenario scenario.yaml --perturbations crash,race
    """
    from ctrlmgr import __version__
    from ctrlmgr.cli.output import progress, trial_lines
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.trial.oracles.single_run_oracles import SingleRunOracles
    from ctrlmgr.trial.perturbation_plan import load as load_plan
    from ctrlmgr.trial.report import trial_document
    from ctrlmgr.trial.running.control_plane import prepare
    from ctrlmgr.trial.running.operator_run import RunOptions
    from ctrlmgr.trial.scenario import load, objects_of
    from ctrlmgr.trial.trial_runner import Trial, TrialOptions

    clock = SystemClock()
    flags = tuple(given_flags("controllers.nodes")) or ("--nodes", _NODES)
    scenario, plan = load(scenario_file), load_plan(plan_file) if plan_file else None
    chosen = _chosen(families)
    objects = objects_of([Path(file) for files in setup for file in files.split(",")])
    place = _new_folder(folder)
    user, group = _user(service_account)
    run = RunOptions(command, user, group, place / _PREPARED, flags, quiet, recovery, limit)
    options = TrialOptions(run, scenario, place, chosen, jobs or os.cpu_count() or 1, plan, keep_all)
    began = clock.monotonic()
    with progress.parts() as tell:
        prepare(run.prepared, objects, flags, clock=clock)
        result = Trial(options, [SingleRunOracles(clock=clock)], tell, clock=clock).run()
    if junit:
        junit.write_bytes(trial_document.as_junit(result))
    if sarif:
        sarif.write_bytes(trial_document.as_sarif(result, __version__))
    if output == "json":
        click.echo(json.dumps(trial_document.as_json(result), indent=2, ensure_ascii=False))
    else:
        _print(result, clock)
        for line in trial_lines.summary_lines(result, clock.monotonic() - began):
            click.echo(line)
    return 1 if result.reported else 0


def _print(result: TrialResult, clock: Clock) -> None:
    from ctrlmgr.cli.output import trial_lines
    from ctrlmgr.trial.report.finding_timeline import timeline
    from ctrlmgr.trial.run_record import opened_log

    for number, reported in enumerate(result.reported, 1):
        with opened_log(reported.record.folder, clock=clock) as log:
            for line in trial_lines.finding_lines(number, reported, timeline(reported, log), _again()):
                click.echo(line)
        click.echo()


def _again() -> str:
    """Return the command that repeats this trial, without its plan and its files."""
    parameters = click.get_current_context().params
    pairs = [
        ("--command", parameters["command"]),
        *(("--setup", file) for file in parameters["setup"]),
        ("--scenario", str(parameters["scenario_file"])),
        ("--service-account", parameters["service_account"]),
    ]
    words = [word for flag, value in pairs if value for word in (flag, value)]
    return shlex.join(["ctrlmgr", "trial", *words, *given_flags("controllers.nodes")])


def _chosen(families: str) -> list[str]:
    chosen = [family for each in families.split(",") if (family := each.strip())]
    if unknown := [family for family in chosen if family not in FAMILIES]:
        raise click.UsageError(f"--perturbations: unknown name {unknown[0]!r}; use some of {', '.join(FAMILIES)}")
    return chosen


def _user(service_account: str) -> tuple[str, str]:
    """Return the operator's user and its group; the server adds the groups of a ServiceAccount."""
    if not service_account:
        return _USER, _MASTERS
    namespace, slash, name = service_account.partition("/")
    if not namespace or not slash or not name:
        raise click.UsageError("--service-account needs a namespace and a name, such as shop/my-operator")
    return f"system:serviceaccount:{namespace}:{name}", ""


def _new_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="ctrlmgr-trial-"))
    if folder.exists():
        raise SettingsError(f"--folder: {folder} exists already; name a new directory")
    return folder
