"""A cluster with webhooks: the log contains the webhook configurations, and a test sets the webhooks' responses by
path.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ctrlmgr.engine.calls.call import Call, Reply
from tests.engine.stage import Response, Stage

RULES = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]
Answering = Callable[[Mapping[str, Any]], Any]
"""A function that returns the `response` of an AdmissionReview (without uid) for the review's `request`, or returns a
whole `Reply`.
"""


class WebhookCluster:
    """A cluster with a namespace `shop` and webhooks.

    `answers` contains the webhooks' responses by path, and `asked` contains the received requests.
    """

    def __init__(self, **answers: Answering) -> None:
        self.answers = answers
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.stage = Stage(caller=self._call)
        self.stage.namespace("shop")

    def configure(self, kind: str, name: str, *hooks: Mapping[str, Any]) -> Response:
        """Store a webhook configuration with `hooks`.

        The URL path of a webhook is the first label of the webhook's name: `/a` for `a.example.com`.
        """
        listed = [self._hook(each) for each in hooks]
        body = {"metadata": {"name": name}, "webhooks": listed}
        return self.stage.send("POST", f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations", body)

    def _hook(self, given: Mapping[str, Any]) -> dict[str, Any]:
        path = given["name"].partition(".")[0]
        return {
            "clientConfig": {"url": f"https://hooks.invalid/{path}"},
            "rules": RULES,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **given,
        }

    def create(self, name: str, **fields: Any) -> Response:
        """Create a ConfigMap."""
        body = {"metadata": {"name": name, **fields.pop("metadata", {})}, **fields}
        return self.stage.send("POST", "/api/v1/namespaces/shop/configmaps", body)

    @property
    def paths(self) -> list[str]:
        """Return the names of the called webhooks, in order."""
        return [path for path, _ in self.asked]

    def _call(self, call: Call) -> Reply:
        path = urlsplit(call.url).path.strip("/")
        review = json.loads(call.body)
        self.asked.append((path, review["request"]))
        answer = self.answers[path](review["request"])
        if isinstance(answer, Reply):
            return answer
        response = {"uid": review["request"]["uid"], **answer}
        body = {"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response}
        return Reply(200, "application/json", json.dumps(body).encode())


def allow(**more: Any) -> Answering:
    return lambda request: {"allowed": True, **more}


def deny(**status: Any) -> Answering:
    return lambda request: {"allowed": False, "status": status}


def patch(*operations: Mapping[str, Any]) -> Answering:
    return lambda request: patched(operations)


def patched(operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}
