"""Tests of the `/readyz` check that waits for the APIServices of built-in groups."""

from __future__ import annotations

from typing import Any

from ctrlmgr.controllers.apiservices.registration_completion import Registration
from tests.controllers.apiservices.test_api_services import SERVICES, Stage


class WatchedStage(Stage):
    def made(self) -> Any:
        self.registration = Registration(self.informers, self.engine.kinds.builtin_groups)
        return super().made()


def test_completion_waits_for_each_apiservice_once() -> None:
    stage = WatchedStage()
    problem = stage.registration.problem()
    assert problem is not None
    assert problem.startswith(
        "missing APIService: [v1. v1.admissionregistration.k8s.io v1.apiextensions.k8s.io v1.apps "
    )
    stage.work()
    stage.hear()
    assert stage.registration.problem() is None
    stage.send("DELETE", f"{SERVICES}/v1.batch")
    stage.hear()
    assert stage.registration.problem() is None
