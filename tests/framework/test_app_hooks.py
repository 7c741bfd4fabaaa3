"""Tests of the hooks that apps declare, in `ctrlmgr serve --app`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from ctrlmgr import App
from ctrlmgr.framework.app_hooks import add_hooks
from ctrlmgr.manager import Hooks
from ctrlmgr.testing.served import ServerProcess
from tests.background import DEADLINE, background
from tests.framework.served import wait_until

APP = '''
"""An app whose start hook waits for a file."""

import asyncio
import threading
from pathlib import Path

from ctrlmgr import App, Client

app = App("hooked")
attempts = []


@app.on_started()
def wait_for_file(stop: threading.Event) -> None:
    """Fail once, and wait for the file after that."""
    attempts.append(1)
    if len(attempts) == 1:
        raise ValueError("first attempt")
    while not stop.is_set() and not Path("go").exists():
        stop.wait(0.05)


@app.on_started(name="asynchronous")
async def started(stop: threading.Event) -> None:
    """Return at once."""
    await asyncio.sleep(0)


@app.on_stopping()
def say_goodbye() -> None:
    """Write what the server still serves."""
    Path("stopped").write_text(str(Client.connect("kubeconfig").get("v1/Namespace", "default").name))
'''


def ask(server: ServerProcess, path: str) -> tuple[int, str]:
    request = Request(f"{server.url}{path}", headers={"Authorization": f"Bearer {server.token}"})
    try:
        with urlopen(request, timeout=30, context=server.trust) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@contextmanager
def starting(folder: Path, *flags: str) -> Iterator[ServerProcess]:
    """Yield a server whose app waits for the file `go` before the server is ready."""
    (folder / "hooked.py").write_text(APP)
    server = ServerProcess(folder, "--database", "memory:", "--app", "hooked:app", *flags)
    with ExitStack() as running:
        entered = background(lambda: running.enter_context(server))
        wait_until(lambda: is_listening(server))
        yield server
        entered.result(DEADLINE)


def is_listening(server: ServerProcess) -> bool:
    try:
        return bool(ask(server, "/livez/ping")[0])
    except (OSError, TypeError, KeyError):  # The kubeconfig is missing or incomplete.
        return False


def test_hooks_of_an_app_run_in_serve(tmp_path: Path) -> None:
    check = "poststarthook/hooked/wait-for-file"
    with starting(tmp_path, "--livez-grace-period", "1h") as server:
        wait_until(lambda: "[+]poststarthook/hooked/asynchronous ok" in ask(server, "/readyz?verbose")[1])
        wait_until(lambda: "[+]poststarthook/bootstrap-controller ok" in ask(server, "/readyz?verbose")[1])
        for endpoint in ("readyz", "healthz"):
            code, text = ask(server, f"/{endpoint}")
            assert (code, f"[-]{check} failed: reason withheld\n" in text) == (500, True)
        assert ask(server, f"/readyz/{check}") == (500, "internal server error: not finished\n")
        assert f"[+]{check} ok\n" in ask(server, "/livez?verbose")[1]
        assert "post-start hook failed, retrying" in server.output
        (tmp_path / "go").touch()
        wait_until(lambda: ask(server, "/readyz")[0] == 200)
        for endpoint in ("readyz", "livez", "healthz"):
            code, text = ask(server, f"/{endpoint}?verbose")
            assert (code, f"[+]{check} ok\n" in text) == (200, True)
        assert f"/livez/{check}" in json.loads(ask(server, "/")[1])["paths"]
    assert (tmp_path / "stopped").read_text() == "default"


def test_liveness_fails_until_the_hooks_have_finished(tmp_path: Path) -> None:
    with starting(tmp_path) as server:
        wait_until(lambda: "[+]poststarthook/bootstrap-controller ok" in ask(server, "/livez?verbose")[1])
        assert ask(server, "/livez")[0] == 500
        (tmp_path / "go").touch()
        wait_until(lambda: ask(server, "/livez")[0] == 200)


def test_hooks_have_the_names_of_their_app_and_function() -> None:
    app, hooks, called = App("shop"), Hooks(), list[Any]()

    @app.on_started()
    def load_prices(stop: threading.Event) -> None:
        called.append(stop)

    @app.on_started(name="other")
    async def anything(stop: threading.Event) -> None:
        called.append(stop)

    @app.on_stopping()
    async def close() -> None:
        called.append("closed")

    add_hooks([app], hooks)
    assert [name for name, _ in hooks.checks] == ["poststarthook/shop/load-prices", "poststarthook/shop/other"]
    stop = threading.Event()
    stop_all = threading.Event()
    stop_all.set()
    *started, stopping = hooks.runnables()
    for each in started:
        each.run(stop)
    stopping.run(stop_all)
    assert called == [stop, stop, "closed"]
    load_prices(stop_all)
    assert called[-1] is stop_all, "the decorator returns the function"


def test_invalid_hooks_are_refused_at_their_declaration() -> None:
    app = App("shop")
    with pytest.raises(TypeError, match="hook nothing: a function for this hook takes one thing, the event `stop`"):
        app.on_started(name="nothing")(lambda: None)  # type: ignore[arg-type,misc]  # what a user may write
    with pytest.raises(TypeError, match="hook one: a function for this hook takes nothing"):
        app.on_stopping(name="one")(lambda stop: None)  # type: ignore[arg-type,misc]  # what a user may write
    app.on_started(name="same")(lambda stop: None)
    with pytest.raises(TypeError, match="the app has two hooks that are called same"):
        app.on_started(name="same")(lambda stop: None)
