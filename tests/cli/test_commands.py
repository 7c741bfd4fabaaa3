"""Tests of the commands without a test module of their own, and of the behaviour that all commands share: exit codes,
errors, start time.
"""

from __future__ import annotations

import json
import os
import pty
import random
import signal
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from ctrlmgr import __version__, cli, errors
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.eventlog.anchor_signing import Sealing, load_seal
from tests.cli.conftest import Run, config_map
from tests.cli.signals import as_usual

PROGRAM = [sys.executable, "-m", "ctrlmgr"]


def file_of(database: str) -> Path:
    return Path(database.removeprefix("sqlite:///"))


def damage(database: str, revision: int) -> None:
    with closing(sqlite3.connect(file_of(database))) as connection, connection:
        connection.execute(
            "UPDATE event SET body = replace(body, 'default', 'defaulT') WHERE revision = ?", (revision,)
        )


# Verify.


def test_verify_accepts_a_correct_log(run: Run, database: str) -> None:
    finished = run("verify", "--database", database)
    assert finished.code == 0
    assert finished.out.startswith("ok: 6 events, head 6, hash ")


def test_verify_names_a_damaged_event(run: Run, database: str) -> None:
    damage(database, 3)
    finished = run("verify", "--database", database)
    assert finished.code == 1
    assert "revision 3 is damaged" in finished.out


def test_verify_reports_damage_as_json(run: Run, database: str) -> None:
    damage(database, 3)
    finished = run("verify", "--database", database, "-o", "json")
    report = json.loads(finished.out)
    assert (finished.code, report["ok"], report["revision"]) == (1, False, 3)


def test_verify_reports_success_as_json(run: Run, database: str) -> None:
    report = json.loads(run("verify", "--database", database, "-o", "json").out)
    assert (report["ok"], report["events"], report["head"]["revision"]) == (True, 6, 6)


def test_verify_detects_lost_newest_events(run: Run, database: str, tmp_path: Path) -> None:
    copy = f"sqlite:///{tmp_path / 'older.db'}"
    assert run("migrate", "--database", copy).code == 0
    finished = run("verify", "--database", copy, "--anchor", str(file_of(database)) + "-anchor")
    assert finished.code == 1
    assert "was another database put in its place?" in finished.out


# Restore.


def test_a_restored_database_continues_above_its_lost_revisions(run: Run, database: str, tmp_path: Path) -> None:
    file = file_of(database)
    anchor = file.with_name(file.name + "-anchor")
    content = json.loads(anchor.read_text())
    anchor.write_text(json.dumps({**content, "revision": 50}))
    assert run("events", "--database", database).code == 1
    finished = run("restore", "--database", database, "--yes", "--above", "60")
    assert finished.code == 0, finished.err
    assert "above revision 60" in finished.out
    assert run("verify", "--database", database).code == 0
    assert json.loads(anchor.read_text())["uuid"] != content["uuid"]


def test_restoring_without_an_anchor_requires_a_revision(run: Run, database: str) -> None:
    file = file_of(database)
    file.with_name(file.name + "-anchor").unlink()
    finished = run("restore", "--database", database, "--yes")
    assert finished.code == 2
    assert "give --above REV" in finished.err


# Compact.


def test_compact_removes_superseded_events(run: Run, database: str) -> None:
    finished = run("compact", "--database", database, "--before", "6", "--resource", "configmaps", "--keep", "2")
    assert (finished.code, finished.out) == (0, "removed 1 events of configmaps superseded up to revision 6\n")
    assert run("verify", "--database", database).code == 0


def test_compact_by_age_accepts_a_duration(run: Run, database: str) -> None:
    finished = run("compact", "--database", database, "--older-than", "1d")
    assert finished.out == "removed 2 events of all resources superseded up to revision 6\n"


def test_compact_by_rules_keeps_all_events_of_clients_by_default(run: Run, database: str) -> None:
    told = [line.split() for line in run("compact", "--database", database).out.splitlines()]
    assert {(words[1], words[4]) for words in told} == {
        ("0", "leases.coordination.k8s.io"), ("0", "masterleases.internal.ctrlmgr.io"),
    }  # fmt: skip


def test_compact_without_rules_keeps_everything(run: Run, database: str, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('[compaction]\nsecrets_for = "0s"\nresources = {}\n')
    assert "keep all events" in run("compact", "--database", database, "--settings", str(file)).out


def test_compact_by_rules_reads_them_from_the_settings(run: Run, database: str, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[compaction]\nmin_revisions = 0\n[compaction.resources]\nconfigmaps = { keep = 2 }\n")
    finished = run("compact", "--database", database, "--settings", str(file))
    assert finished.out == "removed 1 events of configmaps superseded up to revision 6\n"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--before", "3", "--older-than", "1d"], id="two bounds"),
        pytest.param(["--resource", "pods"], id="a resource without a bound"),
        pytest.param(["--keep", "0"], id="keeping nothing"),
        pytest.param(["--before", "7"], id="the future"),
        pytest.param(["--before", "3", "--dry-run", "--shrink"], id="shrinking without removing"),
        pytest.param(["--older-than", "soon"], id="no duration"),
    ],
)
def test_compact_refuses_invalid_arguments(run: Run, database: str, arguments: list[str]) -> None:
    finished = run("compact", "--database", database, *arguments)
    assert finished.code == 2
    assert finished.err.startswith("error: ")


@pytest.mark.parametrize("keep", [1, 2, 3])
@pytest.mark.parametrize("before", [1, 3, 5, 6])
def test_compact_dry_run_prints_the_events_to_remove(run: Run, database: str, before: int, keep: int) -> None:
    arguments = ("compact", "--database", database, "--before", str(before), "--keep", str(keep))
    told = run(*arguments, "--dry-run").out
    assert told == run(*arguments, "--dry-run").out, "nothing was removed"
    assert told.startswith("would remove ")
    assert run(*arguments).out == told.replace("would remove", "removed")


def test_compact_by_rules_dry_run_prints_the_events_to_remove(run: Run, database: str, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[compaction]\nmin_revisions = 0\n[compaction.resources]\nconfigmaps = { keep = 2 }\n")
    finished = run("compact", "--database", database, "--settings", str(file), "--dry-run")
    assert finished.out == "would remove 1 events of configmaps superseded up to revision 6\n"


def test_compact_vacuums_the_database_with_the_option(run: Run, database: str) -> None:
    kept = run("compact", "--database", database, "--before", "3", "--keep", "1")
    assert "new events use the free space; --shrink returns it to the disk" in kept.err
    finished = run("compact", "--database", database, "--before", "6", "--shrink")
    assert finished.out.splitlines()[-1] == "the free space was returned to the disk"
    with sqlite3.connect(file_of(database)) as connection:
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    assert run("verify", "--database", database).code == 0


def test_compact_confirms_on_a_terminal(database: str) -> None:
    command = [sys.executable, "-m", "ctrlmgr", "compact", "--database", database, "--before", "6"]
    for arguments, answer, code, said in (
        ((), b"n\n", 130, b"2 events will be removed permanently"),
        ((), b"y\n", 0, b"removed 2 events"),
        (("--yes",), b"", 0, b"removed 0 events"),
    ):
        terminal, inside = pty.openpty()
        process = subprocess.Popen(
            [*command, *arguments], stdin=inside, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        os.write(terminal, answer)
        output, _ = process.communicate(timeout=60)
        assert (process.returncode, said in output) == (code, True), output
        os.close(terminal)
        os.close(inside)


# Migrate, settings, version.


def test_migrate_is_idempotent(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new' / 'log.db'}"
    assert run("migrate", "--database", url).out.startswith(f"created the event log in {url}")
    assert "is up to date" in run("migrate", "--database", url).out


def test_settings_are_printed_as_a_settings_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTRLMGR_COMPACTION_RESOURCES", '{ "a.b" = { keep = 2, keep_for = "1h" } }')
    printed = run("settings", "--listen", "127.0.0.1:1")
    assert 'listen = "127.0.0.1:1"' in printed.out
    assert "# --listen" in printed.out
    assert "# environment CTRLMGR_COMPACTION_RESOURCES" in printed.out
    file = tmp_path / "printed.toml"
    file.write_text(printed.out)
    monkeypatch.delenv("CTRLMGR_COMPACTION_RESOURCES")
    again = run("settings", "--settings", str(file))
    assert tomllib.loads(again.out) == tomllib.loads(printed.out)


def test_settings_never_show_a_password(run: Run) -> None:
    for output in ("toml", "json"):
        out = run("settings", "--database", "postgresql://u:hunter2@h/db", "-o", output).out
        assert "hunter2" not in out
        assert "postgresql://u:***@h/db" in out


def test_the_version_equals_the_packages_version(run: Run) -> None:
    assert run("--version").out == f"ctrlmgr {__version__}\n"
    assert json.loads(run("version", "-o", "json").out)["ctrlmgr"] == __version__
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__


# Common behaviour of all commands.


def test_read_commands_create_no_files(run: Run, tmp_path: Path) -> None:
    finished = run("events", "--database", f"sqlite:///{tmp_path / 'none.db'}")
    assert finished.code == 3
    assert finished.err.startswith(f"error: there is no database at {tmp_path / 'none.db'}; `ctrlmgr serve` or")
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("command", ["events", "verify", "compact --before 1", "migrate"])
def test_an_unreachable_database_exits_with_3_and_one_line(run: Run, command: str) -> None:
    finished = run(*command.split(), "--database", "postgresql://u:hunter2@127.0.0.1:1/db")
    assert finished.code == 3, finished.err
    assert finished.err.startswith("error: ")
    assert finished.err.count("\n") == 1
    assert "hunter2" not in finished.err


@pytest.mark.parametrize("command", ["events", "verify", "compact --before 1", "migrate", "serve --listen 127.0.0.1:0"])
@pytest.mark.parametrize("is_directory", [False, True], ids=["text file", "directory"])
def test_an_invalid_database_is_refused_in_one_line(run: Run, tmp_path: Path, command: str, is_directory: bool) -> None:
    path = tmp_path / "notes.txt"
    path.mkdir() if is_directory else path.write_text("dear diary\n" * 1000)
    path.chmod(0o700 if is_directory else 0o600)  # otherwise `serve` would restrict the mode of the directory first
    finished = run(*command.split(), "--database", f"sqlite:///{path}")
    assert finished.code in (1, 3), finished.err
    assert finished.err.startswith("error: ")
    assert finished.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["evnets"], "No such command 'evnets'", id="a command that does not exist"),
        pytest.param(
            ["serve", "--port", "80"], "--port=80: plain HTTP is not served; use --listen", id="a flag of other servers"
        ),
        pytest.param(["events", "--wrong"], "No such option", id="an option that does not exist"),
        pytest.param(["events", "--limit", "x"], "'x' is not a valid", id="a number that is none"),
        pytest.param(
            ["events", "--database", "mysql://h"], "database.url: 'mysql' is no database", id="an unknown database"
        ),
        pytest.param(["events", "--database", "memory:"], "memory: only the process", id="a log in memory"),
        pytest.param(["events", "--settings", "none.toml"], "the settings file cannot be read", id="no settings file"),
        pytest.param(["serve", "--controllers", "endpoint-controler"], "did you mean 'endpoint-con", id="a controller"),
        pytest.param(["serve", "--listen", "8080"], "--listen is '8080'; it must be HOST:PORT", id="no address"),
    ],
)
def test_a_usage_error_exits_with_2_and_one_line(run: Run, arguments: list[str], message: str) -> None:
    finished = run(*arguments)
    assert finished.code == 2
    assert finished.err.startswith("error: ")
    assert finished.err.count("\n") == 1
    assert message in finished.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.SettingsError("x"), 2),
        (errors.LogUnavailable("x"), 3),
        (errors.SchemaOutdated("x"), 3),
        (errors.OutcomeUnknown("x"), 3),
        (errors.LogCorrupt("x"), 1),
        (errors.RecordingError("f", 1, "x"), 4),
        (errors.Expired(1, 2), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_error_has_an_exit_code(error: errors.CtrlmgrError, code: int) -> None:
    assert cli.exit_code_of(error) == code


def test_help_does_not_import_heavy_modules() -> None:
    heavy = ("sqlalchemy", "alembic", "uvloop", "asyncio", "rich", "structlog", "apscheduler", "prometheus_client")
    program = "import sys; from ctrlmgr import cli; cli.run(['--help'])"
    code = f"{program}; sys.exit(str([module for module in {heavy} if module in sys.modules]))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.stderr == "[]\n"
    assert "replay" in finished.stdout


def test_every_command_has_help_with_an_example(run: Run) -> None:
    for name in cli.COMMANDS:
        finished = run(name, "--help")
        assert finished.code == 0
        assert name == "version" or f"  ctrlmgr {name}" in finished.out, f"ctrlmgr {name} --help shows no example"


def test_a_closed_pipe_ends_a_command_silently(database: str) -> None:
    arguments = [*PROGRAM, "events", "--database", database, "--follow", "-o", "jsonl"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=unbuffered()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        append_one(database)
        assert process.wait(20) == 141
        assert process.stderr.read() == b""


def test_ctrl_c_ends_a_command_silently(database: str) -> None:
    arguments = [*PROGRAM, "events", "--database", database, "--follow", "-o", "jsonl"]
    with as_usual(signal.SIGINT):
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=unbuffered())
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(6):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read().strip() == b""


def unbuffered() -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


def append_one(database: str) -> None:
    log = open_log(database, clock=SystemClock(), random=random.Random(2))
    log.append([Proposal(EventType.ADDED, config_map("c"), 0)], author=Author("bob"))
    log.close()


# Purge.


def test_a_deleted_object_can_be_purged(run: Run, database: str) -> None:
    finished = run("purge", "configmap/a", "--database", database, "--yes")
    assert finished.code == 1
    assert "delete it first" in finished.err
    finished = run("purge", "configmap/a", "--superseded", "--database", database, "--yes")
    assert (finished.code, finished.err) == (0, ""), finished.err
    assert "purged" in run("verify", "--database", database).out


# Anchors that were shipped to another machine.


def test_verify_compares_the_log_with_every_shipped_anchor(run: Run, database: str, tmp_path: Path) -> None:
    file, shipped = file_of(database), tmp_path / "anchors"
    anchor = file.with_name(file.name + "-anchor").read_bytes()
    shipped.write_bytes(anchor * 3)
    told = ("verify", "--database", database, "--anchor", str(shipped))
    assert "3 anchors match, signatures not checked" in run(*told).out
    wrong = json.loads(anchor)
    shipped.write_bytes(anchor + json.dumps({**wrong, "hash": "00" * 32}).encode() + b"\n")
    finished = run(*told)
    assert finished.code == 1
    assert "does not have the hash in" in finished.out
    assert "anchors, line 2" in finished.out
    assert len(shipped.read_bytes().splitlines()) == 2, "evidence is not touched"
    assert run("verify", "--database", database, "--anchor", str(tmp_path / "none")).code == 2


def test_verify_requires_signed_anchors_if_a_key_is_given(run: Run, database: str, tmp_path: Path) -> None:
    sealing = Sealing(tmp_path / "my.key", makes_key=True)
    assert load_seal(sealing) is not None
    told = ("verify", "--database", database, "--anchor-key", str(sealing.key))
    finished = run(*told)
    assert (finished.code, "not signed with the key" in finished.out) == (1, True)
    log = open_log(database, clock=SystemClock(), random=random.Random(1), sealing=sealing)
    log.close()
    finished = run(*told)
    assert (finished.code, "1 anchor matches, signed with key" in finished.out) == (0, True), finished.out
