"""Tests of commands that read the log of a server: if the user has all permissions, the output equals the output for
the database.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SECRETS, Resource
from ctrlmgr.authentication.user import AUTHENTICATED, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, Immediate, Verdict
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Author, Cause, EventLog, EventType, Failure, Outcome, Proposal, open_log
from ctrlmgr.inspection.database import PostgresDatabase
from tests.cli.conftest import Run, config_map
from tests.ui.site import ADMIN, TOKEN, PageServer, page

VALUE = "aHVzaC1odXNo"
ANN = User("ann", "", (AUTHENTICATED,))
PASSER_BY = User("passer-by", "", (AUTHENTICATED,))
TOKENS = {"anns": ANN, "passers": PASSER_BY}
ALICE = Author("alice", "kubectl/v1.36")
CONFIG_MAPS = Resource("", "configmaps")


class Rights(Immediate):
    """Create roles: ann may list ConfigMaps and Secrets, and read the page; other users have no permissions."""

    def __init__(self) -> None:
        self.kinds = {"configmaps", "secrets"}

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        if user.name == ADMIN.name:
            return ALLOWED
        allowed = not attributes.is_resource or (attributes.verb == "list" and attributes.resource in self.kinds)
        return ALLOWED if user.name == ANN.name and allowed else NO_OPINION


def secret(value: str) -> Object:
    metadata = {
        "name": "s",
        "namespace": "default",
        "uid": "uid-of-s",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": value},
    }
    return Object.from_dict({"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "data": {"password": value}})


def pod(name: str) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"containers": []}})


def fill(log: EventLog) -> None:
    """Make the writes of two reconciles and of a user; one of the reconciles read a pod."""
    log.append([Proposal(EventType.ADDED, config_map("a", key="1"), 0)], author=ALICE)
    log.append([Proposal(EventType.ADDED, secret(VALUE), 0)], author=ALICE)
    log.append([Proposal(EventType.MODIFIED, config_map("a", key="2"), 1)], author=ALICE)
    log.append([Proposal(EventType.ADDED, pod("hidden-pod"), 0)], author=ALICE)
    copier = Author("system:controller:copier")
    cause = Cause(7, "copier", "default/b", 2, log_time(log), (1, 3))
    log.append([Proposal(EventType.ADDED, config_map("b"), 0)], author=copier, cause=cause)
    log.finish(7, Outcome(2500, "ok"))
    cause = Cause(8, "copier", "default/hidden-pod", 1, log_time(log), (4,))
    log.append([Proposal(EventType.ADDED, config_map("c"), 0)], author=copier, cause=cause)
    log.finish(8, Outcome(2500, "error", "hidden-pod is odd"))
    log.append([Proposal(EventType.DELETED, config_map("a", key="2"), 3)], author=ALICE)
    for kind, key in (("ConfigMap", "default/b"), ("Pod", "default/hidden-pod")):
        log.record_failure(failure(kind, key))
    log.flush()


def failure(kind: str, key: str) -> Failure:
    error = f"KeyError: hush-hush of {key}"
    trace = "Traceback of hush-hush"
    return Failure(
        controller="copier", key=key, since=1, last_at=2, attempts=3, kind=kind, error=error, traceback=trace
    )


def log_time(log: EventLog) -> int:
    return log.events_after(0)[-1].recorded_at


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if getattr(request, "param", "sqlite") == "sqlite":
        return f"sqlite:///{tmp_path / 'served.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def rights() -> Rights:
    return Rights()


@pytest.fixture
def served(url: str, rights: Rights) -> Iterator[PageServer]:
    log = open_log(url, clock=SystemClock(), random=random.Random(1), migrate=True)
    fill(log)
    log.close()
    with page(url, users=TOKENS, authorizer=rights) as running:
        yield running


Options = Callable[[str], list[str]]


@pytest.fixture
def to(served: PageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """Return the options for a log-in to the server with a token."""
    monkeypatch.setenv("CTRLMGR_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("KUBECONFIG", raising=False)

    def options(token: str) -> list[str]:
        (tmp_path / token).write_text(token)
        return ["--server", served.url, "--token-file", str(tmp_path / token)]

    return options


def copies(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "data" / "copies").glob("*/log.db"))


COMMANDS = [
    ["events", "-o", "jsonl"],
    ["events", "-o", "wide", "--resource", "configmaps"],
    ["history", "configmap/a"],
    ["sql", "-c", "SELECT * FROM object ORDER BY id", "-o", "csv"],
    ["sql", "-c", "SELECT * FROM reconciles ORDER BY id"],
    ["get", "configmaps", "--at", "3", "-o", "yaml"],
    ["get", "secret/s", "-o", "json"],
    ["history", "secret/s", "-o", "json"],
    ["blame", "configmap/a", "--at", "3"],
    ["diff", "--from", "1", "--to", "6"],
    ["why", "configmap/b", "-o", "json"],
    ["failures", "-o", "wide"],
    ["why", "configmap/a", "--at", "1", "--effects"],
    ["sql", "-c", "SELECT * FROM timeline ORDER BY revision"],
    ["sql", "-c", "SELECT * FROM causes ORDER BY revision, cause_revision"],
    ["sql", "-c", "SELECT revision, hash, append_id FROM event ORDER BY revision", "-o", "csv"],
    ["sql", "-c", "SELECT name, body FROM objects_at(5) ORDER BY name", "-o", "json"],
    ["sql", "hot_objects"],
]


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_a_server_and_its_database_give_the_same_output(
    run: Run, url: str, served: PageServer, to: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The only user of the tests' PostgreSQL is a superuser, and `sql` refuses to run queries as a superuser.
    monkeypatch.setattr(PostgresDatabase, "refuse_power", lambda self: None)
    for commands in (COMMANDS, COMMANDS[:6]):
        for command in commands:
            there, here = run(*command, *to(TOKEN)), run(*command, "--database", url)
            assert (there.code, _same(there.out), there.err) == (here.code, _same(here.out), here.err), command
            assert here.code == 0 or commands is not COMMANDS, here.err
        served.log.compact(3, resource=CONFIG_MAPS)


def _same(text: str) -> str:
    """Remove booleans from the rows, because SQLite and PostgreSQL print only booleans differently."""
    return re.sub(r",(True|False)$", lambda found: f",{int(found[1] == 'True')}", text, flags=re.MULTILINE)


COUNT = ("sql", "-o", "csv", "-c", "SELECT count(*), max(revision) FROM event")


def test_only_new_events_are_transferred(run: Run, served: PageServer, to: Options, tmp_path: Path) -> None:
    assert run(*COUNT, *to(TOKEN)).out.split()[1] == "7,7"
    [copy] = copies(tmp_path)
    assert (copy.stat().st_mode & 0o777, copy.parent.stat().st_mode & 0o077) == (0o600, 0)
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE event SET actor = 'marked' WHERE revision = 1")
    connection.close()
    served.log.append([Proposal(EventType.ADDED, config_map("new"), 0)], author=ALICE)
    assert run(*COUNT, *to(TOKEN)).out.split()[1] == "8,8"
    actors = run("sql", "-o", "csv", "-c", "SELECT actor FROM event WHERE revision IN (1, 8) ORDER BY 1", *to(TOKEN))
    assert actors.out.split() == ["actor", "alice", "marked"]


def test_a_reconciles_outcome_is_transferred_after_its_end(run: Run, served: PageServer, to: Options) -> None:
    cause = Cause(9, "copier", "default/d", 1, 1, (7,))
    served.log.append([Proposal(EventType.ADDED, config_map("d"), 0)], author=ALICE, cause=cause)
    ask = ("sql", "-o", "csv", "-c", "SELECT coalesce(outcome, 'none') AS o FROM reconcile WHERE id = 9", *to(TOKEN))
    assert run(*ask).out.split() == ["o", "none"]
    served.log.finish(9, Outcome(1, "requeued"))
    served.log.flush()
    assert run(*ask).out.split() == ["o", "requeued"]


def test_purged_and_compacted_events_leave_the_copy(run: Run, served: PageServer, to: Options, tmp_path: Path) -> None:
    run(*COUNT, *to(TOKEN))
    [copy] = copies(tmp_path)
    served.log.append([Proposal(EventType.MODIFIED, secret("bmV3"), 2)], author=ALICE)
    served.log.compact(8, resource=SECRETS)
    assert run(*COUNT, *to(TOKEN)).out.split()[1] == "7,8"
    assert VALUE.encode() not in copy.read_bytes()
    served.log.compact(8)
    assert run(*COUNT, *to(TOKEN)).out.split()[1] == "4,8"


def test_a_copy_of_another_log_is_discarded(
    run: Run, url: str, served: PageServer, to: Options, tmp_path: Path
) -> None:
    run(*COUNT, *to(TOKEN))
    [copy] = copies(tmp_path)
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE log_head SET uuid = 'of another log', revision = 1000")
        connection.execute("UPDATE event SET actor = 'of another log'")
    connection.close()
    assert run("events", *to(TOKEN)).out == run("events", "--database", url).out


def test_a_damaged_copy_is_rebuilt(run: Run, served: PageServer, to: Options, tmp_path: Path) -> None:
    run(*COUNT, *to(TOKEN))
    [copy] = copies(tmp_path)
    copy.write_bytes(b"no database at all " * 1000)
    assert run(*COUNT, *to(TOKEN)).out.split()[1] == "7,7"


def test_a_user_receives_listable_objects_without_secrets(
    run: Run, served: PageServer, rights: Rights, to: Options, tmp_path: Path
) -> None:
    out, err = run("events", "-o", "jsonl", *to("anns"))[1:]
    assert err == "note: 1 events on objects that you may not list are omitted\n"
    assert "hidden-pod" not in out
    [copy] = copies(tmp_path)
    told = b"".join(file.read_bytes() for file in copy.parent.iterdir())
    assert VALUE.encode() not in told
    assert b"hidden-pod" not in told
    assert run("sql", "-o", "csv", "-c", "SELECT DISTINCT hash FROM event", *to("anns")).out.split() == ["hash", '""']
    rights.kinds.add("pods")
    assert "hidden-pod" in run("events", *to("anns")).out
    rights.kinds.remove("secrets")
    assert "secrets" not in run("events", *to("anns")).out


def test_a_user_receives_failing_objects_without_reasons(run: Run, served: PageServer, to: Options) -> None:
    everything = run("failures", "-o", "wide", *to(TOKEN)).out
    assert ("hidden-pod" in everything, everything.count("hush-hush")) == (True, 4)
    out = run("failures", "-o", "wide", *to("anns")).out
    assert ("copier fails for ConfigMap default/b" in out, "hidden-pod" in out, "hush" in out) == (True, False, False)
    served.log.record_failure(msgspec.structs.replace(failure("Pod", "default/hidden-pod"), ended_at=5))
    served.log.flush()
    assert "hidden-pod" not in run("failures", *to(TOKEN)).out


def test_a_kubeconfig_names_the_server_by_its_context(
    run: Run, served: PageServer, to: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = run("events", "-o", "jsonl", *to(TOKEN)).out
    file = tmp_path / "kubeconfig"
    servers = {"here": served.url, "elsewhere": "http://127.0.0.1:1"}
    config = {
        "current-context": "here",
        "clusters": [{"name": name, "cluster": {"server": url}} for name, url in servers.items()],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}} for name in servers],
        "users": [{"name": "admin", "user": {"token": TOKEN}}],
    }
    file.write_text(json.dumps(config))
    assert wanted
    assert run("events", "-o", "jsonl", "--kubeconfig", str(file)).out == wanted
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert run("events", "-o", "jsonl", "--context", "here").out == wanted
    assert run("events", "--context", "elsewhere").code != 0
    both = run("events", "--context", "here", "--database", "sqlite:///x.db")
    assert (both.code, "exclude each other" in both.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(
            ["--database", "sqlite:///x.db"], "--database and --server exclude each other", id="a database too"
        ),
        pytest.param(["--follow"], "--follow works only with --database", id="follow"),
    ],
)
def test_mutually_exclusive_options_are_refused(
    run: Run, served: PageServer, to: Options, options: list[str], said: str
) -> None:
    done = run("events", *to(TOKEN), *options)
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--token-file", "x"], "--token-file needs --server", id="a token for nothing"),
        pytest.param(["--context", "x"], "there is no kubeconfig at", id="a context of nothing"),
        pytest.param(["--server", "10.0.0.1"], "--server is a URL such as https://", id="no URL"),
        pytest.param(["--server", "http://10.0.0.1:80"], "write https://", id="no TLS"),
        pytest.param(
            ["--server", "https://127.0.0.1:1"], "there are no credentials for the server", id="no kubeconfig"
        ),
        pytest.param(
            ["--server", "https://127.0.0.1:1", "--token-file", "none"], "--token-file: none cannot", id="no token"
        ),
    ],
)
def test_options_without_effect_are_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str], said: str
) -> None:
    monkeypatch.setenv("CTRLMGR_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    done = run("events", *options)
    assert (done.code != 0, done.out) == (True, "")
    assert said in done.err


def test_refusals_contain_advice(run: Run, served: PageServer, to: Options) -> None:
    unknown, forbidden = run("events", *to("nobodys")), run("events", *to("passers"))
    assert "choose others with --token-file, --kubeconfig or --context" in unknown.err
    assert 'nonResourceURLs ["/ui/api/log"]' in forbidden.err
    assert all(done.code != 0 and done.err.count("\n") == 1 for done in (unknown, forbidden))


def test_an_unreachable_server_is_reported(run: Run, to: Options, served: PageServer) -> None:
    options = to(TOKEN)
    options[1] = "http://127.0.0.1:1"
    done = run("events", *options)
    assert (done.code != 0, done.err.count("\n")) == (True, 1)
    assert "cannot be reached" in done.err
