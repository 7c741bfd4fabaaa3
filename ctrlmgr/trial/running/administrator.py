"""The administrator's client, which applies the setup and runs the steps of a scenario."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ctrlmgr.clock import Clock, pause
from ctrlmgr.errors import ApiError, CtrlmgrError, NotFound, ServiceUnavailable
from ctrlmgr.framework.remote.remote_api import Api, path_of
from ctrlmgr.framework.remote.throttle import Throttle
from ctrlmgr.settings.kubeconfig import load
from ctrlmgr.trial.scenario import Apply, Delete, Patch, Scale, Step, Target, Wait, described

_MANAGER = "ctrlmgr-trial"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_AGAIN: Final = 0.1
_KIND_DEADLINE: Final = 15.0
_WAIT_DEADLINE: Final = 60.0


class StepFailed(CtrlmgrError, RuntimeError):
    """A step of the scenario could not be done."""


class Administrator:
    """A client with all rights; thread-safe."""

    def __init__(self, kubeconfig: Path, until_quiet: Callable[[], object], *, clock: Clock) -> None:
        """Use the server and credentials in `kubeconfig`; `until_quiet` waits until the log is quiet."""
        self._api = Api(load([kubeconfig]), Throttle(0, 1, clock=clock), program=_MANAGER)
        self._until_quiet = until_quiet
        self._clock = clock
        self._lock = threading.Lock()
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}

    def run(self, step: Step) -> None:
        """Run one step of a scenario; raises `StepFailed` if the server refuses it, or if a wait takes too long."""
        try:
            self._run(step)
        except ApiError as error:
            raise StepFailed(f"{described(step)}: {error}") from error

    def apply(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Apply one object; wait until its kind is served."""
        metadata = obj["metadata"]
        target = Target(obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"])
        query = {"fieldManager": _MANAGER, "force": "true"}
        sent = self._api.call("PATCH", self._path(target), json.dumps(obj).encode(), query=query, media_type=_APPLY)
        return dict(json.loads(sent))

    def merge(self, path: str, patch: Mapping[str, Any]) -> None:
        """Apply a JSON merge patch to the object at a URL path."""
        query = {"fieldManager": _MANAGER}
        self._api.call("PATCH", path, json.dumps(patch).encode(), query=query, media_type=_MERGE)

    def delete_pods(self, namespace: str) -> None:
        """Delete all pods of a namespace at once."""
        self._api.call("DELETE", path_of("v1", "pods", namespace), b'{"gracePeriodSeconds":0}')

    def get(self, target: Target) -> dict[str, Any]:
        """Return an object; raises `NotFound` if it does not exist."""
        return dict(json.loads(self._api.call("GET", self._path(target))))

    def _run(self, step: Step) -> None:
        match step:
            case Apply(objects):
                for obj in objects:
                    self.apply(obj)
            case Patch(target, patch):
                self.merge(self._path(target), patch)
            case Scale(target, replicas):
                self.merge(f"{self._path(target)}/scale", {"spec": {"replicas": replicas}})
            case Delete(target):
                self._api.call("DELETE", self._path(target), b'{"propagationPolicy":"Background"}')
            case Wait(None):
                self._until_quiet()
            case Wait(target, condition, exists):
                assert target is not None
                self._wait(step, target, condition, exists)

    def _wait(self, step: Step, target: Target, condition: str, exists: bool) -> None:
        deadline = self._clock.monotonic() + _WAIT_DEADLINE
        while not self._holds(target, condition, exists):
            if self._clock.monotonic() > deadline:
                raise StepFailed(f"{described(step)}: not within {_WAIT_DEADLINE:.0f} s")
            pause(self._clock, _AGAIN)

    def _holds(self, target: Target, condition: str, exists: bool) -> bool:
        try:
            obj = self.get(target)
        except NotFound:
            return not exists
        if not exists:
            return False
        conditions = (obj.get("status") or {}).get("conditions") or []
        return not condition or any(each["type"] == condition and each["status"] == "True" for each in conditions)

    def _path(self, target: Target) -> str:
        plural, is_namespaced = self._served(target.api_version, target.kind)
        namespace = (target.namespace or "default") if is_namespaced else ""
        return path_of(target.api_version, plural, namespace, target.name)

    def _served(self, api_version: str, kind: str) -> tuple[str, bool]:
        """Return the plural name of a kind, and whether it has namespaces; wait until the server serves the kind."""
        deadline = self._clock.monotonic() + _KIND_DEADLINE
        while True:
            with self._lock:
                if found := self._paths.get((api_version, kind)):
                    return found
            self._read_group(api_version)
            if (api_version, kind) in self._paths:
                continue
            if self._clock.monotonic() > deadline:
                raise StepFailed(f"the server does not serve {kind} of {api_version}; add its definition to --setup")
            pause(self._clock, _AGAIN)

    def _read_group(self, api_version: str) -> None:
        try:
            path = path_of(api_version, "", "")
            resources = json.loads(self._api.call("GET", path))["resources"]
        except (NotFound, ServiceUnavailable):
            return
        with self._lock:
            for each in resources:
                if "/" not in each["name"]:
                    self._paths[api_version, each["kind"]] = (each["name"], each["namespaced"])
