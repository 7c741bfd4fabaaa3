"""Tests that a real server writes no byte of a Secret's value to any file, and that a killed rotation loses nothing."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, create_engine, text

from ctrlmgr.cli import ctrlmgr
from ctrlmgr.cli.inspect.remote_log import FOLDER
from ctrlmgr.errors import SettingsError
from tests.e2e.serving import Server, until
from tests.tracing.collector import Collector

SECRETS = "/api/v1/namespaces/default/secrets"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
VISIBLE = "visiblevisible"
GROUP = "widgets.example.com"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "metadata": {"name": GROUP},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


def configuration(folder: Path, *keys: str, name: str = "keys.yaml", more: Sequence[str] = ()) -> Path:
    """Write an EncryptionConfiguration for Secrets, a custom kind and `more`; the keys are derived from their names."""
    listed = ", ".join(f"{{name: {key}, secret: {b64encode(key.encode().ljust(32)).decode()}}}" for key in keys)
    resources = ", ".join(("secrets", GROUP, *more))
    file = folder / name
    file.write_text(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n"
        f"- resources: [{resources}]\n  providers:\n  - aesgcm: {{keys: [{listed}]}}\n  - identity: {{}}\n",
        encoding="utf-8",
    )
    return file


def policy(folder: Path) -> Path:
    file = folder / "policy.yaml"
    file.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n", encoding="utf-8")
    return file


class SpanCollector(Collector):
    """A collector that keeps the exported spans as they were sent."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[bytes] = []

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  # the name is that of the gRPC service
        self.received.append(request.SerializeToString())
        return super().Export(request, context)


def tracing(folder: Path, collector: Collector) -> Path:
    """Write a TracingConfiguration that exports all traces."""
    file = folder / "tracing.yaml"
    file.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
        f"endpoint: {collector.endpoint}\nsamplingRatePerMillion: 1000000\n",
        encoding="utf-8",
    )
    return file


def command(folder: Path, *arguments: str, data: str = "data") -> str:
    """Run a command on the server's log, and return its output."""
    done = CliRunner().invoke(ctrlmgr, arguments, env={"CTRLMGR_DATA_DIR": str(folder / data)})
    assert not done.exit_code, done.output
    return done.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path


@contextlib.contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Server]:
    server = Server(folder / "data", *arguments)
    server.start()
    try:
        yield server
    finally:
        server.close()


def forms(value: str) -> list[bytes]:
    """Return a value as it may be in a file: as it is, and within base64 at each of its three alignments."""
    encoded = [b64encode(b" " * shift + value.encode())[4 if shift else 0 : -4] for shift in range(3)]
    return [value.encode(), *encoded]


def body(name: str, value: str, **annotations: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": annotations}, "stringData": {"password": value}}


def write_secrets(server: Server, chance: random.Random) -> list[str]:
    """Write Secrets in every way that the API has, some of which fail; return the values."""
    values: list[str] = []

    def value(size: int = 32) -> str:
        values.append(chance.randbytes(size).hex())
        return values[-1]

    for name in ("a", "b", "c"):
        server.create(SECRETS, body(name, value(), **{APPLIED: f'{{"stringData":{{"password":"{value()}"}}}}'}))
    server.create(SECRETS, body("large", value(300_000)))
    assert server.request("POST", SECRETS, body("a", value()))[0] == 409
    assert server.request("POST", SECRETS, {**body("bad", value()), "type": "kubernetes.io/tls"})[0] == 422
    assert server.request("POST", SECRETS, {**body("bad", value()), "data": 7, "x": value()})[0] == 400
    assert server.request("PUT", f"{SECRETS}/a", body("a", value()))[0] == 200
    assert server.request("PATCH", f"{SECRETS}/b", {"stringData": {"password": value()}})[0] == 200
    tests = [{"op": "test", "path": "/data/password", "value": value()}]
    found, _ = server.request("PATCH", f"{SECRETS}/b", tests, media_type="application/json-patch+json")
    assert found == 422
    applied = {"apiVersion": "v1", "kind": "Secret", **body("d", value())}
    path = f"{SECRETS}/d?fieldManager=tests"
    assert server.request("PATCH", path, applied, media_type="application/apply-patch+yaml")[0] == 201
    assert server.request("DELETE", f"{SECRETS}/c")[0] == 200
    assert server.request("GET", SECRETS)[0] == 200
    return values


def write_widgets(server: Server, chance: random.Random) -> list[str]:
    """Write objects of a custom kind; return the values."""
    values = [chance.randbytes(32).hex() for _ in range(4)]
    server.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    until(lambda: server.request("GET", WIDGETS)[0] == 200)
    kind = {"apiVersion": "example.com/v1", "kind": "Widget"}
    server.create(WIDGETS, {**kind, "metadata": {"name": "w"}, "spec": {"value": values[0]}})
    assert server.request("PATCH", f"{WIDGETS}/w", {"spec": {"value": values[1]}})[0] == 200
    applied = {**kind, "metadata": {"name": "v"}, "spec": {"value": values[2]}}
    path = f"{WIDGETS}/v?fieldManager=tests"
    assert server.request("PATCH", path, applied, media_type="application/apply-patch+yaml")[0] == 201
    assert server.request("DELETE", f"{WIDGETS}/w")[0] == 200
    server.create(WIDGETS, {**kind, "metadata": {"name": "last"}, "spec": {"value": values[3]}})
    return values


def files(folder: Path) -> Mapping[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("seed", [1])
def test_no_byte_of_a_secret_lies_in_any_file(seed: int, folder: Path) -> None:
    keys = configuration(folder, "key1")
    with SpanCollector() as collector:
        flags = (
            *("--encryption-provider-config", str(keys)),
            *("--audit-policy-file", str(policy(folder)), "--audit-log-path", str(folder / "audit.log")),
            *("--tracing-config-file", str(tracing(folder, collector)), "--log-level", "debug", "--log-requests=true"),
        )
        with serving(folder, *flags) as server:
            chance = random.Random(seed)
            values = [*write_secrets(server, chance), *write_widgets(server, chance)]
            server.create("/api/v1/namespaces/default/configmaps", {**body("open", ""), "data": {"value": VISIBLE}})
            until(lambda: VISIBLE.encode() in (folder / "audit.log").read_bytes())
            copy_log(folder, keys)
            assert "ok: " in command(folder, "verify")
            collector.wait_for(lambda spans: any("/secrets" in span.name for span in spans))
            server.kill()
    found = {**files(folder), "spans": b"".join(collector.received)}
    with contextlib.closing(sqlite3.connect(folder / "data" / "ctrlmgr.db")) as database:
        assert database.execute("SELECT count(*) FROM append_trace").fetchone()[0] > len(values)
    seen = {name for name, content in found.items() if VISIBLE.encode() in content}
    databases = {"fork.db", "backup.db", "copy.db", "log.jsonl", "server.jsonl", "audit.log"}
    assert databases <= seen, "the search finds what is not encrypted"
    assert "data/ctrlmgr.db-wal" in found
    for value in values:
        for form in forms(value):
            assert [name for name, content in found.items() if form in content] == []


def copy_log(folder: Path, keys: Path) -> None:
    """Copy the log of the running server in every way, and record the log and the server."""
    log = f"sqlite:///{folder}/data/ctrlmgr.db"
    command(folder, "fork", "--from", log, "--database", f"sqlite:///{folder}/fork.db")
    command(folder, "backup", str(folder / "backup.db"))
    command(folder, "copy", log, f"sqlite:///{folder}/copy.db")
    chosen = ("--resources", "secrets,configmaps")
    of_log = ("--database", log, "--encryption-provider-config", str(keys))
    command(folder, "record", *of_log, *chosen, "--output", str(folder / "log.jsonl"))
    of_server = ("--kubeconfig", str(folder / "data" / "kubeconfig"), "--for", "1s")
    command(folder, "record", *of_server, *chosen, "--output", str(folder / "server.jsonl"))


def test_the_copy_of_a_server_contains_what_its_reader_may_read(folder: Path) -> None:
    with serving(folder, "--encryption-provider-config", str(configuration(folder, "key1"))) as server:
        server.create(SECRETS, body("a", "a value of a Secret"))
        server.create("/api/v1/namespaces/default/configmaps", {**body("open", ""), "data": {"value": VISIBLE}})
        reader = folder / "reader.token"
        reader.touch(0o600)
        reader.write_text(token_of_reader(server), encoding="ascii")
        history = ("history", "configmaps", "open", "--server", server.url)
        trusted = ("--kubeconfig", str(folder / "data" / "kubeconfig"))
        command(folder, *history, *trusted, "--token-file", str(reader), data="reader")
        admin = folder / "admin.token"
        admin.touch(0o600)
        admin.write_text(server.token, encoding="ascii")
        command(folder, *history, *trusted, "--token-file", str(admin), data="admin")
    for place, reads_secrets in (("reader", False), ("admin", True)):
        copies = [file for file in (folder / place / FOLDER).rglob("log.db*") if file.is_file()]
        content = b"".join(file.read_bytes() for file in copies)
        assert VISIBLE.encode() in content
        assert any(form in content for form in forms("a value of a Secret")) is reads_secrets
        assert {file.stat().st_mode & 0o077 for file in copies} == {0}


def token_of_reader(server: Server) -> str:
    """Create a user that may read ConfigMaps and the log; return its token."""
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]
    roles = "/apis/rbac.authorization.k8s.io/v1"
    server.create(f"{roles}/clusterroles", {"metadata": {"name": "reader"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
    binding = {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": reference}
    server.create(f"{roles}/clusterrolebindings", binding)
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    until(lambda: server.request("GET", account)[0] == 200)
    token: str = server.create(f"{account}/token", {"spec": {}})["status"]["token"]
    return token


def test_callers_with_the_keys_read_plain_objects(folder: Path) -> None:
    keys = ("--encryption-provider-config", str(configuration(folder, "key1")))
    log = ("--database", f"sqlite:///{folder}/data/ctrlmgr.db")
    with serving(folder, *keys) as server:
        server.create(SECRETS, body("a", VISIBLE))
        widget, *_, last = write_widgets(server, random.Random(2))
        shown = b64encode(VISIBLE.encode()).decode()
        assert server.request("GET", f"{SECRETS}/a")[1]["data"]["password"] == shown
        code, page = server.request("GET", f"/ui/api/object?resource={GROUP}&namespace=default&name=last")
        assert code == 200
        assert last in json.dumps(page)
        query = ("sql", "-c", "SELECT body FROM event", "--output", "json")
        found = command(folder, *query, *keys, *log)
        assert shown in found
        assert widget in found
        assert shown not in command(folder, *query, *log)
        assert widget in command(folder, "history", GROUP, "w", "--output", "json", *keys, *log)


def test_a_recording_of_an_encrypted_log_needs_its_keys(folder: Path) -> None:
    keys = ("--encryption-provider-config", str(configuration(folder, "key1")))
    record = ("record", "--database", f"sqlite:///{folder}/data/ctrlmgr.db", "--output")
    with serving(folder, *keys) as server:
        server.create(SECRETS, body("a", VISIBLE))
    with pytest.raises(
        SettingsError, match=rf"contains encrypted objects \(secrets, {GROUP}\); give their keys with --"
    ):
        CliRunner().invoke(ctrlmgr, [*record, str(folder / "refused.jsonl")], catch_exceptions=False)
    assert not (folder / "refused.jsonl").exists()
    command(folder, *record, str(folder / "others.jsonl"), "--resources", "namespaces")
    command(folder, *record, str(folder / "masked.jsonl"), *keys)
    command(folder, *record, str(folder / "plain.jsonl"), "--no-redact", *keys)
    shown = b64encode(VISIBLE.encode())
    recordings = {name: shown in content for name, content in files(folder).items() if name.endswith(".jsonl")}
    assert recordings == {"others.jsonl": False, "masked.jsonl": False, "plain.jsonl": True}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, folder: Path) -> str:
    """Return the URL of a database, once for each type of database."""
    if request.param == "sqlite":
        return f"sqlite:///{folder}/data/ctrlmgr.db"
    found: str = request.getfixturevalue("postgres_url")
    return found


def rotated(engine: Engine) -> int:
    """Return the number of data keys that the new key encrypts."""
    with engine.connect() as connection:
        query = text("SELECT count(*) FROM data_key WHERE wrapped LIKE 'k8s:enc:aesgcm:v1:new:%'")
        return int(connection.execute(query).scalar_one())


def kill_rotation(rotation: Sequence[str], engine: Engine, at_least: int) -> None:
    """Start a rotation, and kill it when it has rotated some data keys."""
    process = subprocess.Popen(rotation, stdout=subprocess.DEVNULL)
    while process.poll() is None and rotated(engine) < at_least:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_rotation_killed_under_load_loses_nothing(folder: Path, url: str) -> None:
    chance = random.Random(3)
    more = [f"r{number}.example.com" for number in range(100)]  # each has a data key
    new, old = (configuration(folder, key, name=f"{key}.yaml", more=more) for key in ("new", "old"))
    keys = configuration(folder, "new", "old", more=more)
    log, with_keys = ("--database", url), ("--encryption-provider-config", str(keys))
    with serving(folder, *log, "--encryption-provider-config", str(old)) as server:
        server.create(SECRETS, body("first", "0"))
    written: list[str] = []
    rotation = [sys.executable, "-m", "ctrlmgr", "encryption", "rotate", *with_keys, *log]
    engine = create_engine(url)
    counts = []
    with serving(folder, *log, *with_keys) as server:
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                server.create(SECRETS, body(f"s{len(written)}", str(len(written))))
                written.append(f"s{len(written)}")

        writer = threading.Thread(target=write)
        writer.start()
        before = rotated(engine)  # the server has added data keys
        for _ in range(4):
            kill_rotation(rotation, engine, rotated(engine) + chance.randint(1, 20))
            counts.append(rotated(engine))
        command(folder, "encryption", "rotate", *with_keys, *log)
        stop.set()
        writer.join()
        server.kill()
    engine.dispose()
    assert before < counts[0] < counts[-1], "the rotation was killed when it had rotated some data keys"
    status = command(folder, "encryption", "status", *log)
    assert (":old:" in status, status.count(":new:") > len(more)) == (False, True)
    with serving(folder, *log, "--encryption-provider-config", str(new)) as server:
        items = server.request("GET", SECRETS)[1]["items"]
    assert {item["metadata"]["name"] for item in items} == {"first", *written}
    assert len(written) > 10
    assert {item["data"]["password"] for item in items} >= {b64encode(b"0").decode()}
    assert "ok: " in command(folder, "verify", *log)
