"""Tests of problems with files and credentials: one line names the file, the reason and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlmgr.testing.served import ServerProcess
from tests.cli.conftest import Run

APP = """from ctrlmgr import App, Context, Kind
app = App("shop")
class Shop(Kind, api_version="example.com/v1"): ...
@app.controller(Shop)
def shops(shop: Shop, context: Context) -> None: ...
"""
WITHOUT_KIND = """from ctrlmgr import App
app = App("pods")
@app.controller("v1/Pod")
def pods(pod, context): ...
"""


@pytest.fixture(scope="module")
def wrong_token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Run a server; yield its URL and a kubeconfig with a token that the server rejects."""
    folder = tmp_path_factory.mktemp("served")
    with ServerProcess(folder, "--database", "memory:") as server:
        kubeconfig = folder / "wrong"
        kubeconfig.write_text(server.kubeconfig.read_text().replace(server.token, "another-token"))
        yield server.url, kubeconfig


@pytest.mark.parametrize(
    "command",
    [
        ["get", "pods"],
        ["run", "shop.py"],
        ["run", "pods.py"],
        ["run", "builtin:endpoints-controller"],
        ["record", "-o", "file.jsonl"],
        ["failures"],
    ],
    ids=lambda each: " ".join(each[:2]),
)
def test_an_invalid_token_error_names_the_server_and_the_kubeconfig(
    wrong_token: tuple[str, Path], run: Run, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "pods.py").write_text(WITHOUT_KIND)
    url, kubeconfig = wrong_token
    code, _, err = run(*command, "--kubeconfig", str(kubeconfig))
    (line,) = err.splitlines()[-1:]
    assert code == 1
    assert f"{url} does not accept the credentials of {kubeconfig}, context" in line
    assert "--kubeconfig or --context" in line


def test_an_unwritable_folder_of_a_database_is_named(run: Run) -> None:
    code, _, err = run("serve", "--data-dir", "/proc/self", "--listen", "127.0.0.1:0")
    assert (code, len(err.splitlines())) == (3, 1)
    assert "unable to open database file (/proc/self/ctrlmgr.db: No such file or directory)" in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[server]\nlisen = "x"\n', "no setting 'server.lisen'; did you mean 'server.listen'?"),
        ('listen = "x"\n', "no setting 'listen'; did you mean 'server.listen'?"),
        ("[api]\nport = 1\n", "no setting 'api'; `ctrlmgr settings` lists all"),
    ],
)
def test_a_settings_file_with_an_unknown_key_is_named(run: Run, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "ctrlmgr.toml"
    file.write_text(text)
    assert run("serve", "--settings", str(file)) == (2, "", f"error: {file}: there is {said}\n")


def test_an_unreadable_certificate_is_named(run: Run, tmp_path: Path) -> None:
    absent, folder = tmp_path / "absent.pem", tmp_path
    code, _, err = run("serve", "--client-ca-file", str(absent))
    assert (code, err) == (
        2,
        f"error: authentication.client_ca_file: {absent} cannot be read: No such file or directory\n",
    )
    assert f"{folder} cannot be read: Is a directory" in run("serve", "--client-ca-file", str(folder)).err
