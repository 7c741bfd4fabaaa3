"""Controls a recording that another process serves.

Guarantees: all failures are raised as ctrlmgr's errors, with the server's message if it sent one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from ctrlmgr.errors import Forbidden, NotFound, ServiceUnavailable, SettingsError
from ctrlmgr.recording.capture.cluster_client import Cluster
from ctrlmgr.recording.playback.playback_control import State
from ctrlmgr.recording.playback.pretended_writes import PretendedWrite
from ctrlmgr.settings import Settings
from ctrlmgr.settings.kubeconfig import Access

T = TypeVar("T")

FOLDER = "play"
"""The name of the folder in the data directory in which a served recording has its files."""

_PATH = "/play"


def kubeconfig(settings: Settings) -> Path:
    """Return the path of the kubeconfig for a served recording."""
    return settings.data_path / FOLDER / "kubeconfig"


class _WriteList(msgspec.Struct):
    writes: list[PretendedWrite]


class Controls:
    """Sends commands to a served recording; each command returns the new state of the player."""

    def __init__(self, access: Access) -> None:
        """Create a client for the URL and credentials in `access`; no request is sent yet."""
        self._cluster = Cluster(access)

    def state(self) -> State:
        """Return the current state of the player."""
        return self._request("GET", _PATH, {}, State)

    def command(self, name: str, **parameters: str) -> State:
        """Send a command with its parameters: `pause`, `resume`, `step` (`events`), `seek` (`to`), `speed` (`times`).

        Raises `BadRequest` for parameters that the server refuses.
        """
        return self._request("POST", f"{_PATH}/{name}", parameters, State)

    def writes(self) -> list[PretendedWrite]:
        """Return all stored writes in order."""
        found: list[PretendedWrite] = []
        while page := self._request("GET", f"{_PATH}/writes", {"after": str(_last(found))}, _WriteList).writes:
            found += page
        return found

    def _request(self, method: str, path: str, query: dict[str, str], type_: type[T]) -> T:
        try:
            return msgspec.json.decode(self._cluster.request(method, path, query), type=type_)
        except (NotFound, Forbidden) as error:
            raise SettingsError(f"{self._cluster.server} does not let us control a recording: {error}") from error
        except msgspec.MsgspecError as error:
            raise ServiceUnavailable(f"{self._cluster.server} did not answer as expected: {error}") from error


def _last(writes: list[PretendedWrite]) -> int:
    return writes[-1].number if writes else 0
