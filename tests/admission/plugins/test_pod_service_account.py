"""Tests of the ServiceAccount that a pod gets, its token volume, and the Secrets that the pod may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ctrlmgr.admission.plugins.pod_service_account import MOUNT_PATH, ServiceAccount
from ctrlmgr.api.field import Path
from ctrlmgr.api.object import Object
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.engine.operations import Await
from ctrlmgr.errors import Forbidden
from ctrlmgr.kinds.core.pod.volumes.defaults import token_source
from ctrlmgr.kinds.core.pod.volumes.validation import _validate_projected, validate_volumes
from ctrlmgr.testing import FakeClock
from tests.admission.stage import Write

PLUGIN = ServiceAccount(FakeClock())
OWN = {"name": "own", "mountPath": MOUNT_PATH}


def account(name: str = "default", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "annotations": fields.pop("annotations", {})}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, **fields}


STRICT = account(
    "strict",
    annotations={"kubernetes.io/enforce-mountable-secrets": "T"},
    secrets=[{"name": "ok"}],
    imagePullSecrets=[{"name": "pull"}],
)


def admitted(spec: Mapping[str, Any], *accounts: Mapping[str, Any]) -> dict[str, Any]:
    given = {"containers": [{"name": "c"}], **spec}
    made: dict[str, Any] = Write("v1/pods", {"spec": given}, None, *(accounts or (account(),))).admit(PLUGIN)["spec"]
    return made


def test_every_container_mounts_a_token() -> None:
    spec = admitted({"initContainers": [{"name": "i"}]})
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    [volume] = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    mount = {"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}
    assert spec["containers"][0]["volumeMounts"] == spec["initContainers"][0]["volumeMounts"] == [mount]
    token, authority, namespace = volume["projected"]["sources"]
    assert token == {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    assert authority["configMap"]["name"] == "kube-root-ca.crt"
    assert namespace["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"] == "metadata.namespace"


@pytest.mark.parametrize(
    ("pod", "of_account", "mounts"),
    [(None, None, True), (None, False, False), (True, False, True), (False, True, False)],
)
def test_the_pods_automount_setting_overrides_its_accounts(
    pod: bool | None, of_account: bool | None, mounts: bool
) -> None:
    spec = {} if pod is None else {"automountServiceAccountToken": pod}
    fields: dict[str, Any] = {} if of_account is None else {"automountServiceAccountToken": of_account}
    assert ("volumes" in admitted(spec, account(**fields))) is mounts


def test_a_mount_of_the_pod_itself_is_kept() -> None:
    own = {"containers": [{"name": "c", "volumeMounts": [OWN]}], "volumes": [{"name": "own"}]}
    assert admitted(own)["volumes"] == [{"name": "own"}]
    spec = admitted({"volumes": [{"name": "kube-api-access-mine"}]})
    assert spec["volumes"] == [{"name": "kube-api-access-mine"}]
    assert spec["containers"][0]["volumeMounts"][0]["name"] == "kube-api-access-mine"


def test_a_pod_without_image_pull_secrets_gets_its_accounts() -> None:
    pulling = account(imagePullSecrets=[{"name": "a"}, {"name": "b"}])
    assert admitted({}, pulling)["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert admitted({"imagePullSecrets": [{"name": "c"}]}, pulling)["imagePullSecrets"] == [{"name": "c"}]
    assert "imagePullSecrets" not in admitted({})


def env(name: str) -> dict[str, Any]:
    return {"env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}]}


def env_from(name: str) -> dict[str, Any]:
    return {"envFrom": [{"secretRef": {"name": name}}]}


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"volumes": [{"name": "v", "secret": {"secretName": "no"}}]}, "volume with"),
        ({"containers": [{"name": "c", **env("no")}]}, "container c with envVar E referencing"),
        ({"containers": [{"name": "c", **env_from("no")}]}, "container c with envFrom referencing"),
        ({"initContainers": [{"name": "i", **env("no")}]}, "init container i with envVar E referencing"),
        ({"initContainers": [{"name": "i", **env_from("no")}]}, "init container i with envFrom referencing"),
    ],
)
def test_an_account_can_enforce_mountable_secrets(spec: dict[str, Any], place: str) -> None:
    with pytest.raises(Forbidden) as refused:
        admitted({"serviceAccountName": "strict", **spec}, STRICT)
    assert str(refused.value) == (
        f'pods "x" is forbidden: {place} secret.secretName="no" is not allowed because service account strict '
        "does not reference that secret"
    )
    admitted({"serviceAccountName": "strict", "containers": [{"name": "c", **env("ok"), **env_from("ok")}]}, STRICT)


def test_an_account_can_enforce_its_image_pull_secrets() -> None:
    spec = {"serviceAccountName": "strict", "imagePullSecrets": [{"name": "pull"}, {"name": "no"}]}
    with pytest.raises(Forbidden, match=r'imagePullSecrets\[1\]\.name="no" is not allowed .* that imagePullSecret'):
        admitted(spec, STRICT)


def test_mountable_secrets_are_enforced_for_ephemeral_containers() -> None:
    old = {"spec": {"serviceAccountName": "strict", "containers": [{"name": "c", **env("no")}]}}
    for name in "ok", "no":
        new = {"spec": {**old["spec"], "ephemeralContainers": [{"name": "e", **env(name)}]}}
        write = Write("v1/pods", new, old, STRICT, subresource="ephemeralcontainers", operation=Verb.UPDATE)
        if name == "ok":
            assert write.admit(PLUGIN) == write.attributes.object
        else:
            with pytest.raises(Forbidden, match="ephemeral container e with envVar E referencing"):
                write.admit(PLUGIN)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"serviceAccountName": "a"}, "a mirror pod may not reference service accounts"),
        ({"volumes": [{"secret": {"secretName": "s"}}]}, "a mirror pod may not reference secrets"),
        ({"containers": [env("s")]}, "a mirror pod may not reference secrets"),
        ({"imagePullSecrets": [{"name": "s"}]}, "a mirror pod may not reference secrets"),
        (
            {"volumes": [{"projected": {"sources": [{"serviceAccountToken": {}}]}}]},
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ],
)
def test_a_mirror_pod_has_no_account_and_no_secrets(spec: dict[str, Any], problem: str) -> None:
    metadata = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    with pytest.raises(Forbidden) as refused:
        Write("v1/pods", {"metadata": metadata, "spec": spec}).admit(PLUGIN)
    assert str(refused.value) == f'pods "x" is forbidden: {problem}'
    assert Write("v1/pods", {"metadata": metadata, "spec": {}}).admit(PLUGIN)["spec"] == {}


def test_a_pod_with_a_missing_account_is_refused() -> None:
    with pytest.raises(Forbidden) as refused:
        admitted({"serviceAccountName": "gone"})
    assert str(refused.value) == (
        'pods "x" is forbidden: error looking up service account default/gone: serviceaccount "gone" not found'
    )


class _DelayedAccountState:
    """A state in which the ServiceAccount `default` exists from the revision `made_at` on."""

    def __init__(self, made_at: int) -> None:
        self.revision = 1
        self._made_at = made_at

    def get(self, *_: object) -> Object | None:
        return Object.from_dict(account()) if self.revision >= self._made_at else None


def waiting(made_at: int) -> tuple[dict[str, Any], int]:
    """Return a pod that was admitted to a state whose revision increases with each wait, and the number of waits."""
    write = Write("v1/pods", {"spec": {"containers": []}})
    write.attributes.view = state = _DelayedAccountState(made_at)  # type: ignore[assignment]  # it is asked for no list
    operation = PLUGIN.admit(write.attributes)
    assert operation is not None
    waits = 0
    for command in operation:
        assert isinstance(command, Await)
        assert command.revision == state.revision + 1
        waits += 1
        if made_at < 1000:
            state.revision += 1
    return write.attributes.fields, waits


def test_creation_waits_for_the_default_account() -> None:
    pod, waits = waiting(4)
    assert pod["spec"]["serviceAccountName"] == "default"
    assert waits == 3


def test_the_wait_for_the_default_account_is_limited() -> None:
    with pytest.raises(Forbidden, match='serviceaccount "default" not found'):
        waiting(1000)


def test_the_token_volume_is_valid() -> None:
    """The plugin's injected volume is not validated again for each pod; a volume with an additional
    field is validated.
    """
    volume = {"name": "kube-api-access-x", "projected": token_source()}
    for given, problems in ((volume, 0), ({**volume, "emptyDir": {}}, 1)):
        _, errors = validate_volumes([given], "p", Path("spec.volumes"), is_pod=True)
        assert len(errors) == problems
    assert _validate_projected(token_source(), Path("projected")) == []
