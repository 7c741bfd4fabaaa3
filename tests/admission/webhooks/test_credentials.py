"""Tests of the credentials that the server sends to webhooks, by host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.admission.plugin_registry import new_chain
from ctrlmgr.admission.webhooks.credentials import HookCredentials, read_credentials
from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.engine.calls.call import ANONYMOUS, Call, Reply
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import AdmissionSettings
from ctrlmgr.settings.configuration_files import Document, read_document
from ctrlmgr.testing import FakeClock
from tests.engine.stage import Stage, builtin_kinds


def users(*names: str) -> HookCredentials:
    return HookCredentials({name: {"token": name} for name in names})


@pytest.mark.parametrize(
    ("url", "names", "chosen"),
    [
        ("https://a.shop.svc:443/x", ("a.shop.svc:443", "a.shop.svc"), "a.shop.svc:443"),
        ("https://a.shop.svc:443/x", ("*.shop.svc", "*.svc"), "*.shop.svc"),
        ("https://a.shop.svc:443/x", ("*.svc:443", "a.shop.svc"), "*.svc:443"),
        ("https://hooks.example.com/x", ("hooks.example.com",), "hooks.example.com"),
        ("https://hooks.example.com/x", ("*.com",), "*.com"),
        ("https://hooks.example.com:8443/x", ("hooks.example.com", "*.com"), None),
        ("https://hooks.example.com:8443/x", ("*.example.com:8443",), "*.example.com:8443"),
        ("https://hooks.example.com/x", ("*.other.com",), None),
    ],
)
def test_the_most_specific_host_name_wins(url: str, names: tuple[str, ...], chosen: str | None) -> None:
    found = users(*names).of(url)
    assert found == (ANONYMOUS if chosen is None else ({"authorization": f"Bearer {chosen}"}, b""))


def configured(folder: Path, user: dict[str, Any], **more: Any) -> Document:
    listed = [{"name": "*.invalid", "user": user}]
    (folder / "hooks.kubeconfig").write_text(json.dumps({"users": listed}), encoding="utf-8")
    kinds = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration"}
    file = folder / "hooks.yaml"
    file.write_text(json.dumps({**kinds, "kubeConfigFile": "hooks.kubeconfig", **more}), encoding="utf-8")
    return read_document(file)


@pytest.mark.parametrize("plugin", ["Mutating", "Validating"])
def test_a_webhook_receives_its_credentials(tmp_path: Path, plugin: str) -> None:
    (tmp_path / "token").write_text("one")
    configured(tmp_path, {"tokenFile": "token"})
    listed = [{"name": f"{plugin}AdmissionWebhook", "path": "hooks.yaml"}]
    kinds = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    (tmp_path / "admission.json").write_text(json.dumps({**kinds, "plugins": listed}))
    settings = AdmissionSettings(
        disable_plugins=("ServiceAccount",), control_config_file=str(tmp_path / "admission.json")
    )
    chain = new_chain(builtin_kinds(), FakeClock(), settings, AlwaysAllow())
    calls: list[Call] = []

    def answer(call: Call) -> Reply:
        calls.append(call)
        uid = json.loads(call.body)["request"]["uid"]
        response = {"uid": uid, "allowed": True}
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
        return Reply(200, "application/json", json.dumps(review).encode())

    stage = Stage(admission=chain, caller=answer)
    stage.namespace("shop")
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://hooks.invalid/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = f"/apis/admissionregistration.k8s.io/v1/{plugin.lower()}webhookconfigurations"
    assert stage.send("POST", path, {"metadata": {"name": "hooks"}, "webhooks": [hook]}).code == 201
    maps = "/api/v1/namespaces/shop/configmaps"
    assert stage.send("POST", maps, {"metadata": {"name": "a"}}).code == 201
    (tmp_path / "token").write_text("two")
    assert stage.send("POST", maps, {"metadata": {"name": "b"}}).code == 201
    assert [each.credentials.headers["authorization"] for each in calls] == ["Bearer one", "Bearer two"]
    (tmp_path / "token").unlink()
    refused = stage.send("POST", maps, {"metadata": {"name": "c"}})
    assert refused.code == 500
    assert 'failed calling webhook "a.example.com": could not get REST client: ' in refused.message


@pytest.mark.parametrize(
    ("user", "more", "problem"),
    [
        ({}, {"kubeConfigFile": "absent"}, "kubeConfigFile must name a file, not 'absent'"),
        ({}, {"kind": "Other"}, "kind must be WebhookAdmissionConfiguration, not 'Other'"),
        ({}, {"odd": 1}, "Object contains unknown field `odd`"),
        ({"exec": {"command": "x"}}, {}, "user '*.invalid' has a credential plugin"),
    ],
)
def test_invalid_credentials_are_refused(
    tmp_path: Path, user: dict[str, Any], more: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        read_credentials(configured(tmp_path, user, **more))
    assert str(refused.value).startswith(f"{tmp_path}/hooks.yaml:1: {problem}")
