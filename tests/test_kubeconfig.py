from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.tls import ensure_certificates
from ctrlmgr.settings.kubeconfig import default_files, in_cluster, load


def config(cluster: Any, user: Any, name: str = "one", **rest: Any) -> dict[str, Any]:
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "shop"}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        **rest,
    }


def written(folder: Path, fields: object, name: str = "config") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(fields))
    return path


def test_a_kubeconfig_with_a_token(tmp_path: Path) -> None:
    access = load([written(tmp_path, config({"server": "http://10.0.0.1:8080/"}, {"token": "secret"}))])
    assert (access.server, access.namespace, access.context) == ("http://10.0.0.1:8080", "shop", None)
    assert access.headers() == {"authorization": "Bearer secret"}
    assert "secret" not in repr(access)


def test_a_kubeconfig_with_a_password(tmp_path: Path) -> None:
    access = load([written(tmp_path, config({"server": "http://a"}, {"username": "u", "password": "p"}))])
    assert access.headers() == {"authorization": f"Basic {base64.b64encode(b'u:p').decode()}"}


def test_a_token_file_beside_the_kubeconfig_is_read_each_time(tmp_path: Path) -> None:
    access = load([written(tmp_path, config({"server": "http://a"}, {"tokenFile": "token"}))])
    for token in ("first", "second"):
        (tmp_path / "token").write_text(token + "\n")
        assert access.headers() == {"authorization": f"Bearer {token}"}


def test_the_first_file_that_defines_a_name_wins(tmp_path: Path) -> None:
    first = written(tmp_path, config({"server": "http://first"}, {"token": "1"}), "a")
    second = written(tmp_path, config({"server": "http://second"}, {"token": "2"}), "b")
    other = written(tmp_path, config({"server": "http://other"}, {"token": "3"}, "two"), "c")
    files = [tmp_path / "none", first, second, other]
    assert load(files).server == "http://first"
    assert load(files, "two").headers() == {"authorization": "Bearer 3"}


def test_a_credential_plugin_gets_its_environment(tmp_path: Path) -> None:
    script = (
        "import json, os; info = json.loads(os.environ['KUBERNETES_EXEC_INFO']);"
        "print(json.dumps({'status': {'token': os.environ['WHO'] + '@' + info['apiVersion']}}))"
    )
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", script],
        "env": [{"name": "WHO", "value": "me"}],
    }
    access = load([written(tmp_path, config({"server": "http://a"}, {"exec": plugin}))])
    assert access.headers() == {"authorization": "Bearer me@client.authentication.k8s.io/v1"}


def test_an_unusable_certificate_is_refused(tmp_path: Path) -> None:
    cluster = {"server": "https://a", "certificate-authority-data": base64.b64encode(b"nonsense").decode()}
    with pytest.raises(SettingsError, match="certificates of context 'one' cannot be used"):
        load([written(tmp_path, config(cluster, {}))])


PLUGIN = {"command": "/nowhere/at-all", "installHint": "install it"}


@pytest.mark.parametrize(
    ("fields", "context", "message"),
    [
        ([], "", "has no current context"),
        ("text", "", "is not a kubeconfig"),
        ({"contexts": [{"context": {}}]}, "", "is not a kubeconfig"),
        (config({"server": "http://a"}, {}), "two", "has no context 'two'; there are: one"),
        (config({"server": "http://a"}, {}, clusters=[]), "", "has no cluster 'one'; there are: none"),
        (config({"server": "a:8080"}, {}), "", "has no field server"),
        (config({"server": "https://a", "certificate-authority": "none.crt"}, {}), "", "none.crt cannot be read"),
        (config({"server": "https://a", "certificate-authority-data": "?"}, {}), "", "is not base64"),
        (config({"server": "https://a"}, {"exec": PLUGIN}), "", "at-all' failed: .*; install it"),
    ],
)
def test_errors_name_the_file(tmp_path: Path, fields: object, context: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load([written(tmp_path, fields)], context)


def test_a_missing_kubeconfig_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no kubeconfig at"):
        load([tmp_path / "config"])


def test_the_kubeconfig_is_searched_like_kubectl(tmp_path: Path) -> None:
    assert default_files({}, tmp_path) == [tmp_path / ".kube" / "config"]
    assert default_files({"KUBECONFIG": "/a:/b:"}, tmp_path) == [Path("/a"), Path("/b")]


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    variables = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert in_cluster(variables, tmp_path) is None
    (tmp_path / "token").write_text("t")
    ensure_certificates(tmp_path, ["a"], clock=SystemClock())  # one of them is ca.crt
    access = in_cluster(variables, tmp_path)
    assert access is not None
    assert (access.server, access.headers()) == ("https://[fd00::1]:443", {"authorization": "Bearer t"})
    assert in_cluster({}, tmp_path) is None
