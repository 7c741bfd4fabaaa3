"""Tests of the permissions to control a served recording and to list pretended writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.mock_cluster import MockCluster, mock_cluster
from tests.recording.samples import SMALL
from tests.serve.test_authorization import TOKENS


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockCluster]:
    folder: Path = tmp_path_factory.mktemp("played")
    tokens = folder / "play" / "tokens.csv"
    tokens.parent.mkdir(0o700)
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    with mock_cluster(folder, SMALL, "--paused", "--writes", "pretend") as server:
        yield server


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/play"),
        ("GET", "/play/writes"),
        ("POST", "/play/pause"),
        ("POST", "/play/step?events=1"),
        ("POST", "/play/seek?to=start"),
        ("POST", "/play/speed?times=2"),
        ("GET", "/api/v1/secrets"),
        ("GET", "/ui/api/status"),
    ],
)
def test_recording_requires_the_right_to_the_path(
    server: MockCluster, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    assert server.request(method, path)[0] == 200
    monkeypatch.setattr(server, "token", "ann-token")
    code, told = server.request(method, path)
    assert (code, told["reason"]) == (403, "Forbidden")
    assert 'User "ann" cannot' in told["message"]
