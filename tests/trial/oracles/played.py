"""A run whose operator is the test itself: the engine of the API server writes the log that oracles read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ctrlmgr.engine.request_options import Requester
from ctrlmgr.trial.oracles.kept_log import KeptLog, read
from ctrlmgr.trial.run_record import OUTPUT, OperatorExit, RunRecord, StepSpan
from tests.controllers.customresourcedefinitions.defined import WIDGETS, DefinedStage, definition, version, widget
from tests.controllers.worked_stage import MERGE

OPERATOR = "trial-operator"
MAPS = "/api/v1/namespaces/shop/configmaps"
SECRETS = "/api/v1/namespaces/shop/secrets"
PATHS = {"Widget": WIDGETS, "ConfigMap": MAPS, "Secret": SECRETS}
_OPERATOR = Requester(OPERATOR, ("system:masters",), "operator/1")


class Played(DefinedStage):
    """A cluster with the kind Widget; `operator_…` writes as the operator, and `user_…` as the user."""

    def __init__(self, folder: Path = Path("nowhere"), *, versions: list[Any] | None = None) -> None:
        super().__init__()
        status = version(subresources={"status": {}})
        self.define(definition(versions=versions or [status]))
        self.folder = folder
        self.steps: list[StepSpan] = []
        self.exits: list[OperatorExit] = []
        self.started_at = self.head

    @property
    def head(self) -> int:
        return self.log.head().revision

    @contextmanager
    def step(self) -> Iterator[None]:
        """Record a step of the scenario, after a time of rest."""
        self.clock.step(2)
        began = self.head
        yield
        self.steps.append(StepSpan(began, self.head))

    def user_create(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        with self.step():
            return self._sent("POST", PATHS[fields["kind"]], fields)

    def user_patch(self, kind: str, name: str, patch: Any) -> dict[str, Any]:
        with self.step():
            return self._sent("PATCH", f"{PATHS[kind]}/{name}", patch, media_type=MERGE)

    def user_delete(self, kind: str, name: str) -> None:
        with self.step():
            self._sent("DELETE", f"{PATHS[kind]}/{name}")

    def operator_create(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return self._sent("POST", PATHS[fields["kind"]], fields, requester=_OPERATOR)

    def operator_patch(self, kind: str, name: str, patch: Any, part: str = "") -> dict[str, Any]:
        path = f"{PATHS[kind]}/{name}{part}"
        return self._sent("PATCH", path, patch, media_type=MERGE, requester=_OPERATOR)

    def operator_delete(self, kind: str, name: str) -> None:
        self._sent("DELETE", f"{PATHS[kind]}/{name}", requester=_OPERATOR)

    def _sent(self, *request: Any, **options: Any) -> dict[str, Any]:
        answer = self.send(*request, **options)
        assert answer.code < 300, answer.body
        self.clock.step(0.01)
        body: dict[str, Any] = answer.body
        return body

    def record(self, *, quiet: bool = True, output: str = "") -> RunRecord:
        if output:
            (self.folder / OUTPUT).write_text(output)
        return RunRecord(
            self.folder, OPERATOR, self.started_at, tuple(self.steps), self.head, tuple(self.exits), became_quiet=quiet
        )

    def kept(self, *, quiet: bool = True, output: str = "") -> KeptLog:
        """Return the log of the run so far."""
        return read(self.log, self.record(quiet=quiet, output=output))


def owner(obj: Mapping[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """Return owner references to an object."""
    metadata = obj["metadata"]
    reference = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return [{**reference, **fields}]


def config_map(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


def secret(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **metadata}, "stringData": {"key": "x"}}


__all__ = ["MAPS", "OPERATOR", "WIDGETS", "Played", "config_map", "owner", "secret", "version", "widget"]
