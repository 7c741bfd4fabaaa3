"""Tests of ImagePolicyWebhook: the requests to the backend, the caching of verdicts, and missing responses of the
backend.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.admission.plugin_registry import new_chain
from ctrlmgr.admission.plugins.optional.image_policy_webhook import ImagePolicyWebhook
from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.engine.calls.call import Call, Reply, Tries
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import AdmissionSettings
from ctrlmgr.settings.configuration_files import Document, read_document
from ctrlmgr.testing import FakeClock
from tests.admission.stage import Write
from tests.engine.stage import Response, Stage, builtin_kinds

PODS = "/api/v1/namespaces/shop/pods"
KUBECONFIG = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "images", "user": "server"}}],
    "clusters": [{"name": "images", "cluster": {"server": "https://images.invalid/policy", "tls-server-name": "img"}}],
    "users": [{"name": "server", "user": {"token": "t"}}],
}
DENIED = "image policy webhook backend denied one or more images: "


def document(folder: Path, **policy: Any) -> Document:
    (folder / "kubeconfig").write_text(json.dumps(KUBECONFIG), encoding="utf-8")
    file = folder / "images.yaml"
    file.write_text(json.dumps({"imagePolicy": {"kubeConfigFile": "kubeconfig", **policy}}), encoding="utf-8")
    return read_document(file)


def says(**status: Any) -> Reply:
    review = {"kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v1alpha1", "status": status}
    return Reply(200, "application/json", json.dumps(review).encode())


class ImagePolicyCluster:
    """A cluster in which another server approves the images of pods."""

    def __init__(self, folder: Path, reply: Reply, **policy: Any) -> None:
        self.calls: list[Call] = []
        self.reply = reply
        self.clock = FakeClock()
        document(folder, **policy)
        config = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": "ImagePolicyWebhook", "path": "images.yaml"}],
        }
        file = folder / "admission.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        settings = AdmissionSettings(
            enable_plugins=("ImagePolicyWebhook",),
            disable_plugins=("ServiceAccount",),
            control_config_file=str(file),
        )
        chain = new_chain(builtin_kinds(), self.clock, settings, AlwaysAllow())
        self.stage = Stage(admission=chain, caller=self._call)
        self.stage.namespace("shop")

    def create(self, name: str, image: str = "a:1", **metadata: Any) -> Response:
        spec = {"containers": [{"name": "c", "image": image}], "initContainers": [{"name": "i", "image": "b"}]}
        return self.stage.send("POST", PODS, {"metadata": {"name": name, **metadata}, "spec": spec})

    def _call(self, call: Call) -> Reply:
        self.calls.append(call)
        return self.reply


def test_the_review_contains_the_pod_and_the_request(tmp_path: Path) -> None:
    judged = ImagePolicyCluster(tmp_path, says(allowed=True))
    marks = {"x.image-policy.k8s.io/break-glass": "yes", "other": "no"}
    assert judged.create("p", annotations=marks).code == 201
    (call,) = judged.calls
    assert call.url == "https://images.invalid/policy?timeout=30s"
    assert (call.credentials.headers, call.server_name) == ({"authorization": "Bearer t"}, "img")
    assert call.tries == Tries(5, 0.5, 1.5)
    assert json.loads(call.body) == {
        "kind": "ImageReview",
        "apiVersion": "imagepolicy.k8s.io/v1alpha1",
        "metadata": {},
        "spec": {
            "containers": [{"image": "a:1"}, {"image": "b"}],
            "annotations": {"x.image-policy.k8s.io/break-glass": "yes"},
            "namespace": "shop",
        },
        "status": {"allowed": False},
    }


def test_a_review_of_a_changed_pod_contains_only_the_added_containers(tmp_path: Path) -> None:
    judged = ImagePolicyCluster(tmp_path, says(allowed=True))
    judged.create("p")
    added = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "tools"}]}}
    patch = "application/strategic-merge-patch+json"
    assert judged.stage.send("PATCH", f"{PODS}/p/ephemeralcontainers", added, media_type=patch).code == 200
    assert json.loads(judged.calls[-1].body)["spec"]["containers"] == [{"image": "tools"}]


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"allowed": False, "reason": "unsigned"}, f"{DENIED}unsigned"),
        ({"allowed": False}, "one or more images rejected by webhook backend"),
        ({}, "one or more images rejected by webhook backend"),
    ],
)
def test_a_denied_image_is_refused(tmp_path: Path, status: dict[str, Any], problem: str) -> None:
    refused = ImagePolicyCluster(tmp_path, says(**status)).create("p")
    assert (refused.code, refused.message) == (403, f'pods "p" is forbidden: {problem}')


def test_decisions_are_cached(tmp_path: Path) -> None:
    judged = ImagePolicyCluster(tmp_path, says(allowed=True), allowTTL=60, denyTTL=-1)
    answers = [judged.create("a").code, judged.create("b").code]
    assert (answers, len(judged.calls)) == ([201, 201], 1)
    judged.clock.step(60)
    judged.reply = says(allowed=False)
    assert [judged.create("c").code, judged.create("d").code] == [403, 403]
    assert len(judged.calls) == 3  # a no is not believed at all
    judged.reply = says(allowed=True)
    assert judged.create("e", "other").code == 201
    assert len(judged.calls) == 4


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (
            Reply(problem="dial tcp 192.0.2.1:443: connect: connection refused"),
            'Post "https://images.invalid/policy?timeout=30s": dial tcp 192.0.2.1:443: connect: connection refused',
        ),
        (
            Reply(500, "text/plain", b"oops"),
            'an error on the server ("oops") has prevented the request from succeeding',
        ),
        (Reply(404), "the server could not find the requested resource"),
        (Reply(200, "application/json", b"{}"), 'no kind "" is registered for version "" in scheme'),
        (Reply(200, "application/json", b"nonsense"), "couldn't get version/kind; json parse error: "),
    ],
)
def test_a_failed_review_denies_unless_default_allow_is_configured(tmp_path: Path, reply: Reply, problem: str) -> None:
    refused = ImagePolicyCluster(tmp_path, reply).create("p")
    assert refused.code == 403
    assert refused.message.startswith(f'pods "p" is forbidden: {problem}')
    judged = ImagePolicyCluster(tmp_path, reply, defaultAllow=True)
    made = judged.create("p")
    assert made.code == 201
    stored = judged.stage.send("GET", f"{PODS}/p").body["metadata"]["annotations"]
    assert stored == {"alpha.image-policy.k8s.io/failed-open": "true"}
    judged.create("q")
    assert len(judged.calls) == 2  # that no answer came is not remembered


def test_the_audit_event_contains_the_decision(tmp_path: Path) -> None:
    clock = FakeClock()
    replies = [says(allowed=True, auditAnnotations={"audit-required": "true", "no key": "x"}), Reply(problem="EOF")]
    told = []
    for reply in replies:
        plugin = ImagePolicyWebhook(document(tmp_path, defaultAllow=True), clock)
        told.append(annotated(plugin, reply))
    assert told == [
        {"imagepolicywebhook.image-policy.k8s.io/audit-required": "true"},
        {"imagepolicywebhook.image-policy.k8s.io/failed-open": "true"},
    ]


def annotated(plugin: ImagePolicyWebhook, reply: Reply) -> dict[str, str]:
    """Return the audit annotations of a pod's creation for which the image backend sends this response."""
    attributes = Write("v1/pods", {"spec": {"containers": [{"name": "c", "image": "i"}]}}).attributes
    deciding = plugin.validate(attributes)
    next(deciding)
    deciding.send({})  # the headers
    with pytest.raises(StopIteration):
        deciding.send([reply])
    return attributes.annotations


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ('"allowTTL": 1801', "1: allowTTL must be between 1 and 1800 seconds, 0 for 300, or -1 for none"),
        ('"denyTTL": -2', "1: denyTTL must be between 1 and 1800 seconds, 0 for 30, or -1 for none"),
        ('"retryBackoff": 300001', "1: retryBackoff must be between 1 and 300000 milliseconds, 0 for 500"),
        ('"allowTtl": 1', "1: Object contains unknown field `allowTtl`"),
        ('"defaultAllow": "yes"', "1: Expected `bool`, got `str`"),
        ('"kubeConfigFile": "absent"', "1: kubeConfigFile must name a file, not 'absent'"),
    ],
)
def test_a_broken_configuration_is_refused_with_its_line(tmp_path: Path, change: str, problem: str) -> None:
    document(tmp_path)
    file = tmp_path / "images.json"
    given = '"kubeConfigFile": "kubeconfig"'
    told = change if "kubeConfigFile" in change else f"{given}, {change}"
    file.write_text(f'{{"imagePolicy": {{{told}}}}}', encoding="utf-8")
    with pytest.raises(SettingsError) as refused:
        ImagePolicyWebhook(read_document(file), FakeClock())
    assert str(refused.value).startswith(f"{file}:{problem}")
    assert "\n" not in str(refused.value)


def test_an_unusable_kubeconfig_is_refused(tmp_path: Path) -> None:
    made = document(tmp_path)
    broken: dict[str, Callable[[], str]] = {
        "has no current context": lambda: "{}",
        "kubeconfig:1: not valid YAML": lambda: "[",
        "certificate-authority-data is not base64": lambda: json.dumps(
            {
                **KUBECONFIG,
                "clusters": [{"name": "images", "cluster": {"server": "https://x", "certificate-authority-data": "%"}}],
            }
        ),
        "cannot be used": lambda: json.dumps(
            {
                **KUBECONFIG,
                "clusters": [
                    {
                        "name": "images",
                        "cluster": {"server": "https://x", "certificate-authority-data": b64encode(b"x").decode()},
                    }
                ],
            }
        ),
    }
    for problem, text in broken.items():
        (tmp_path / "kubeconfig").write_text(text(), encoding="utf-8")
        with pytest.raises(SettingsError, match=problem):
            ImagePolicyWebhook(made, FakeClock())
