"""Tests that the judges detect if results are missing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.robustness.faults.judging import converged
from tests.robustness.histories.history import Logged

NAMESPACE = [
    ("ADDED", "namespaces", "", "team"),
    ("ADDED", "serviceaccounts", "team", "default"),
    ("ADDED", "configmaps", "team", "kube-root-ca.crt"),
]
SERVICE = [
    ("ADDED", "services", "team", "web"),
    ("ADDED", "ipaddresses.networking.k8s.io", "", "10.96.0.7"),
    ("ADDED", "endpoints", "team", "web"),
]
Change = tuple[str, str, str, str]


def log_of(changes: Sequence[Change]) -> list[Logged]:
    return [
        Logged(revision, 0, kind, resource, namespace, name, "uid", {}, "", "")
        for revision, (kind, resource, namespace, name) in enumerate(changes, 1)
    ]


def deletions(*changes: Change) -> list[Change]:
    return [("DELETED", *change[1:]) for change in changes]


def test_finished_work_is_accepted() -> None:
    assert list(converged(log_of([*NAMESPACE, *SERVICE]))) == []
    assert list(converged(log_of([*NAMESPACE, *SERVICE, *deletions(*SERVICE)]))) == []
    assert list(converged(log_of([*NAMESPACE, *deletions(*NAMESPACE)]))) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param([*NAMESPACE, *SERVICE[:2]], "Endpoints without", id="a Service without Endpoints"),
        pytest.param(
            [*NAMESPACE, *SERVICE, *deletions(*SERVICE[:2])], "Endpoints with", id="Endpoints with no Service"
        ),
        pytest.param([*NAMESPACE, SERVICE[0], SERVICE[2]], "0 addresses for 1", id="a Service without an address"),
        pytest.param([*NAMESPACE, *SERVICE, *deletions(SERVICE[0], SERVICE[2])], "1 addresses", id="a leaked address"),
        pytest.param(NAMESPACE[:2], "kube-root-ca.crt in team", id="a namespace without the root certificate"),
        pytest.param([NAMESPACE[0], NAMESPACE[2]], "serviceaccounts/default", id="a namespace without its account"),
    ],
)
def test_unfinished_work_is_reported(changes: list[Change], said: str) -> None:
    assert any(said in sentence for sentence in converged(log_of(changes)))
