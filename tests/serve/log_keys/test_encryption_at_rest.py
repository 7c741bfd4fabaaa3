"""Tests that a real server writes no byte of a Secret's value to any file, and that a killed rotation loses nothing."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ctrlmgr.cli import ctrlmgr
from ctrlmgr.errors import SettingsError
from tests.e2e.serving import Server, until

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


def configuration(folder: Path, *keys: str, name: str = "keys.yaml") -> Path:
    """Write an EncryptionConfiguration whose keys are derived from their names."""
    listed = ", ".join(f"{{name: {key}, secret: {b64encode(key.encode().ljust(32)).decode()}}}" for key in keys)
    file = folder / name
    file.write_text(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n"
        f"- resources: [secrets, {GROUP}]\n  providers:\n  - aesgcm: {{keys: [{listed}]}}\n  - identity: {{}}\n",
        encoding="utf-8",
    )
    return file


def policy(folder: Path) -> Path:
    file = folder / "policy.yaml"
    file.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n", encoding="utf-8")
    return file


def command(folder: Path, *arguments: str) -> str:
    """Run a command on the server's log, and return its output."""
    done = CliRunner().invoke(ctrlmgr, arguments, env={"CTRLMGR_DATA_DIR": str(folder / "data")})
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
    flags = ("--encryption-provider-config", str(keys), "--audit-policy-file", str(policy(folder)))
    with serving(folder, *flags, "--audit-log-path", str(folder / "audit.log"), "--log-level", "debug") as server:
        chance = random.Random(seed)
        values = [*write_secrets(server, chance), *write_widgets(server, chance)]
        server.create("/api/v1/namespaces/default/configmaps", {**body("open", ""), "data": {"value": VISIBLE}})
        until(lambda: VISIBLE.encode() in (folder / "audit.log").read_bytes())
        command(
            folder, "fork", "--from", f"sqlite:///{folder}/data/ctrlmgr.db", "--database", f"sqlite:///{folder}/fork.db"
        )
        command(folder, "backup", str(folder / "backup.db"))
        command(folder, "copy", f"sqlite:///{folder}/data/ctrlmgr.db", f"sqlite:///{folder}/copy.db")
        record = ("record", "--database", f"sqlite:///{folder}/data/ctrlmgr.db", "--output")
        chosen = ("--resources", "secrets,configmaps", "--encryption-provider-config", str(keys))
        command(folder, *record, str(folder / "recording.jsonl"), *chosen)
        assert "ok: " in command(folder, "verify")
        server.kill()
    found = files(folder)
    seen = {name for name, content in found.items() if VISIBLE.encode() in content}
    databases = {"fork.db", "backup.db", "copy.db", "recording.jsonl", "audit.log"}
    assert databases <= seen, "the search finds what is not encrypted"
    assert "data/ctrlmgr.db-wal" in found
    for value in values:
        for form in forms(value):
            assert [name for name, content in found.items() if form in content] == []


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


def test_a_rotation_killed_under_load_loses_nothing(folder: Path) -> None:
    chance = random.Random(3)
    keys = configuration(folder, "new", "old")
    old = configuration(folder, "old", name="old.yaml")
    with serving(folder, "--encryption-provider-config", str(old)) as server:
        server.create(SECRETS, body("first", "0"))
    written: list[str] = []
    with serving(folder, "--encryption-provider-config", str(keys)) as server:
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                server.create(SECRETS, body(f"s{len(written)}", str(len(written))))
                written.append(f"s{len(written)}")

        writer = threading.Thread(target=write)
        writer.start()
        rotation = [sys.executable, "-m", "ctrlmgr", "encryption", "rotate", "--encryption-provider-config", str(keys)]
        url = f"sqlite:///{folder}/data/ctrlmgr.db"
        for _ in range(4):
            process = subprocess.Popen([*rotation, "--database", url], stdout=subprocess.DEVNULL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.2, 0.9))
            process.send_signal(signal.SIGKILL)
            process.wait()
        command(folder, "encryption", "rotate", "--encryption-provider-config", str(keys))
        stop.set()
        writer.join()
        server.kill()
    assert ":old:" not in command(folder, "encryption", "status")
    new = configuration(folder, "new", name="new.yaml")
    with serving(folder, "--encryption-provider-config", str(new)) as server:
        items = server.request("GET", SECRETS)[1]["items"]
    assert {item["metadata"]["name"] for item in items} == {"first", *written}
    assert len(written) > 10
    assert {item["data"]["password"] for item in items} >= {b64encode(b"0").decode()}
    assert "ok: " in command(folder, "verify")
