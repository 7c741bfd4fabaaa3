"""Tests a real server with the KMS plugin of the examples, each a process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.serving import Server, until
from tests.serve.log_keys.test_encryption_at_rest import SECRETS, body, command, files, forms

PLUGIN = Path(__file__).parents[3] / "examples" / "kms.py"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
VALUE = "a value that no file may contain"


def plugin(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, str(PLUGIN), "--keys", str(folder / "kms-keys.json"), *arguments]


@contextlib.contextmanager
def running_plugin(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the plugin until the block ends, or until the block stops it."""
    start = plugin(folder, "--socket", str(folder / "kms.sock"))
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True, cwd=PLUGIN.parents[1]) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("serving the KMS API v2 at unix://")
            yield process
        finally:
            process.terminate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    endpoint = f"unix://{tmp_path}/kms.sock"
    (tmp_path / "keys.yaml").write_text(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- resources: [secrets]\n"
        f"  providers:\n  - kms: {{apiVersion: v2, name: example, endpoint: '{endpoint}', timeout: 1s}}\n"
        "  - identity: {}\n",
        encoding="utf-8",
    )
    return tmp_path


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    server = Server(folder / "data", "--encryption-provider-config", str(folder / "keys.yaml"))
    server.start()
    try:
        yield server
    finally:
        server.close()


def health(server: Server, path: str) -> int:
    return server.request("GET", path)[0]


@pytest.mark.slow
def test_a_server_encrypts_with_a_plugin_also_while_it_restarts(folder: Path) -> None:
    with running_plugin(folder) as first, serving(folder) as server:
        server.create(SECRETS, body("a", VALUE))
        assert health(server, "/readyz/kms-providers") == health(server, "/healthz/kms-providers") == 200
        first.terminate()
        first.wait()
        until(lambda: health(server, "/readyz/kms-providers") == 500)
        assert "KMS Provider example" in server.request("GET", "/healthz/kms-providers")[1]
        assert (health(server, "/readyz"), health(server, "/healthz"), health(server, "/livez")) == (500, 500, 200)
        server.create(CONFIG_MAPS, {"metadata": {"name": "open"}})
        server.create(SECRETS, body("b", VALUE))
        assert len(server.request("GET", SECRETS)[1]["items"]) == 2
        with running_plugin(folder):
            until(lambda: health(server, "/readyz") == 200)
        server.kill()
    found = files(folder / "data")
    assert [name for name, content in found.items() for form in forms(VALUE) if form in content] == []


def test_a_new_key_of_the_plugin_encrypts_new_data_keys(folder: Path) -> None:
    with running_plugin(folder):
        with serving(folder) as server:
            server.create(SECRETS, body("a", VALUE))
        assert subprocess.check_output(plugin(folder, "--new-key"), text=True, cwd=PLUGIN.parents[1]) == "key-2\n"
        with serving(folder) as server:
            server.create(SECRETS, body("b", VALUE))
            assert {each["metadata"]["name"] for each in server.request("GET", SECRETS)[1]["items"]} == {"a", "b"}
        before = command(folder, "encryption", "status")
        assert before.count("k8s:enc:kms:v2:example: key-1 ") == before.count("k8s:enc:kms:v2:example: key-2 ") == 2
        keys = ("--encryption-provider-config", str(folder / "keys.yaml"))
        assert "rotated 2 data keys" in command(folder, "encryption", "rotate", *keys)
        assert "key-1" not in command(folder, "encryption", "status")


def test_a_server_without_its_plugin_does_not_start_and_says_why(folder: Path) -> None:
    start = [sys.executable, "-m", "ctrlmgr", "serve", "--listen", "127.0.0.1:0"]
    keys = ("--encryption-provider-config", str(folder / "keys.yaml"))
    variables = {**os.environ, "CTRLMGR_DATA_DIR": str(folder / "data")}
    done = subprocess.run([*start, *keys], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "error: failed to perform status section of the healthz check for KMS Provider example, error: rpc error: code "
        f"= DeadlineExceeded desc = context deadline exceeded: unix://{folder}/kms.sock did not answer within 1 s"
    ]
