"""Tests of kubectl patch, label, annotate, replace and edit, and of requests that the server refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl, patch
from tests.e2e.serving import Server

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
}


@pytest.fixture
def app(kubectl: Kubectl, server: Server) -> Kubectl:
    """kubectl in a namespace with a ConfigMap `app`."""
    path = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    server.create(path, {"metadata": {"name": "app"}, "data": {"a": "1"}})
    return kubectl


def test_strategic_patches_merge_lists_by_their_keys(kubectl: Kubectl) -> None:
    kubectl("create -f -", SERVICE)
    added = kubectl(patch("service web", {"spec": {"ports": [{"port": 53, "name": "dns"}]}}))
    assert added == "service/web patched\n"
    assert [each["port"] for each in kubectl.get("service web")["spec"]["ports"]] == [53, 80]
    kubectl(patch("service web", {"spec": {"ports": [{"port": 80, "$patch": "delete"}]}}))
    assert [each["port"] for each in kubectl.get("service web")["spec"]["ports"]] == [53]


def test_merge_patches_replace_lists_and_remove_nulls(kubectl: Kubectl) -> None:
    kubectl("create -f -", SERVICE)
    change = {"spec": {"ports": [{"port": 53}], "selector": {"app": None, "tier": "front"}}}
    kubectl(patch("service web", change, "--type=merge"))
    spec = kubectl.get("service web")["spec"]
    assert (spec["selector"], [each["port"] for each in spec["ports"]]) == ({"tier": "front"}, [53])


def test_json_patches_are_sequences_of_operations(app: Kubectl) -> None:
    steps: list[dict[str, Any]] = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "move", "from": "/data/a", "path": "/data/b"},
        {"op": "add", "path": "/metadata/labels", "value": {"x/y": "z"}},
        {"op": "replace", "path": "/metadata/labels/x~1y", "value": "w"},
    ]
    app(patch("configmap app", steps, "--type=json"))
    found = app.get("configmap app")
    assert (found["data"], found["metadata"]["labels"]) == ({"b": "1"}, {"x/y": "w"})
    refused = app.fails(patch("configmap app", [{"op": "test", "path": "/data/b", "value": "2"}], "--type=json"))
    assert refused.startswith("The request is invalid")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (patch("configmap none", {}), 'Error from server (NotFound): configmaps "none" not found\n'),
        (
            patch("configmap app", {"metadata": {"name": "b"}}, "--type=merge"),
            "the name of the object (b) does not match the name on the URL (app)",
        ),
        (
            patch("configmap app", {"data": {"a": []}}),
            "json: cannot unmarshal array into Go struct field ConfigMap.data of type string",
        ),
        (
            patch("configmap app", {"kind": "Pod"}, "--type=merge"),
            'Pod in version "v1" cannot be handled as a ConfigMap',
        ),
        (
            patch("configmap app", {"metadata": {"resourceVersion": "1"}}),
            'Error from server (Conflict): Operation cannot be fulfilled on configmaps "app": the object has been '
            "modified; please apply your changes to the latest version and try again\n",
        ),
    ],
)
def test_invalid_patches_are_refused(app: Kubectl, change: str, complaint: str) -> None:
    assert complaint in app.fails(change)


def test_a_patch_without_effect_changes_nothing(app: Kubectl) -> None:
    revision = app.get("configmap app")["metadata"]["resourceVersion"]
    assert app(patch("configmap app", {"data": {"a": "1"}})) == "configmap/app patched (no change)\n"
    assert app.get("configmap app")["metadata"]["resourceVersion"] == revision


def test_dry_runs_of_patches(app: Kubectl) -> None:
    for where in ("server", "client"):
        patched = app(patch("configmap app", {"data": {"b": "2"}}, f"--dry-run={where} -o json"))
        assert json.loads(patched)["data"] == {"a": "1", "b": "2"}
    assert app.get("configmap app")["data"] == {"a": "1"}


def test_patching_the_status(kubectl: Kubectl) -> None:
    kubectl.since(24)
    kubectl("run one --image=nginx")
    change = {"status": {"phase": "Running", "podIP": "10.1.0.1"}, "spec": {"nodeName": "elsewhere"}}
    assert kubectl(patch("pod one", change, "--subresource=status")) == "pod/one patched\n"
    pod = kubectl.get("pod one")
    assert (pod["status"]["phase"], pod["spec"].get("nodeName")) == ("Running", None)
    assert kubectl("get pods --field-selector=status.phase=Running -o name") == "pod/one\n"


def test_labels(app: Kubectl) -> None:
    assert app("label configmap app x=1 y=2") == "configmap/app labeled\n"
    assert app.fails("label configmap app x=3") == "error: 'x' already has a value (1), and --overwrite is false\n"
    app("label configmap app x=3 --overwrite")
    assert sorted(app("label configmap app --list").split()) == ["x=3", "y=2"]
    app("label configmap app x-")
    assert app.get("configmap app")["metadata"]["labels"] == {"y": "2"}
    app("create configmap other")
    assert app("label configmaps --all z=1").splitlines() == [
        f"configmap/{name} labeled" for name in ("app", "kube-root-ca.crt", "other")
    ]
    app("label configmaps -l y=2 only=this")
    assert app("get configmaps -l only -o name") == "configmap/app\n"
    app("label configmaps --all gone=1 --dry-run=server")
    assert app("get configmaps -l gone -o name") == ""


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            "label configmap app 'a b=1'",
            'The ConfigMap "app" is invalid: metadata.labels: Invalid value: "a b": name part must consist of '
            "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
            "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')\n",
        ),
        ("label configmap none a=b", 'Error from server (NotFound): configmaps "none" not found\n'),
        (
            "annotate configmap app a=b --resource-version=1",
            'Error from server (Conflict): Operation cannot be fulfilled on configmaps "app": the object has been '
            "modified; please apply your changes to the latest version and try again\n",
        ),
    ],
)
def test_invalid_labels_and_annotations_are_refused(app: Kubectl, change: str, complaint: str) -> None:
    assert app.fails(change) == complaint


def test_annotations(app: Kubectl) -> None:
    app("annotate configmap app note='two words' other=1")
    assert "already has a value (two words)" in app.fails("annotate configmap app note=one")
    app("annotate configmap app note=one --overwrite")
    app("annotate configmap app other-")
    assert app.get("configmap app")["metadata"]["annotations"] == {"note": "one"}


def test_replacing(app: Kubectl) -> None:
    found = app.get("configmap app")
    assert app("replace -f -", {**found, "data": {"b": "2"}}) == "configmap/app replaced\n"
    assert app.get("configmap app")["data"] == {"b": "2"}
    assert app.fails("replace -f -", found) == (
        'Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on configmaps '
        '"app": the object has been modified; please apply your changes to the latest version and try again\n'
    )
    unversioned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"c": "3"}}
    assert app("replace -f - --dry-run=server", unversioned) == "configmap/app replaced (server dry run)\n"
    assert app("replace -f -", unversioned) == "configmap/app replaced\n"
    assert app.get("configmap app")["data"] == {"c": "3"}
    absent = {**unversioned, "metadata": {"name": "absent"}}
    assert app.fails("replace -f -", absent) == (
        'Error from server (NotFound): error when replacing "STDIN": configmaps "absent" not found\n'
    )


def test_replace_force_recreates_the_object(app: Kubectl, tmp_path: Path) -> None:
    before = app.get("configmap app")["metadata"]["uid"]
    file = tmp_path / "app.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}}))
    told = app(f"replace --force -f {file}")
    assert told.splitlines()[0].startswith('configmap "app" deleted')
    assert told.splitlines()[1] == "configmap/app replaced"
    assert app.get("configmap app")["metadata"]["uid"] != before


def test_replace_raw_puts_to_a_path(app: Kubectl, namespace: str) -> None:
    found = app.get("configmap app")
    path = f"/api/v1/namespaces/{namespace}/configmaps/app"
    answer = json.loads(app(f"replace --raw {path} -f -", {**found, "data": {"raw": "1"}}))
    assert answer["data"] == {"raw": "1"}


def test_editing(kubectl: Kubectl, editor: str) -> None:
    kubectl("create configmap app --from-literal=a=one --from-literal=b=1")
    assert kubectl("edit configmap app", KUBE_EDITOR=editor) == "configmap/app edited\n"
    assert kubectl.get("configmap app")["data"] == {"a": "two", "b": "1"}
    done = kubectl.run("edit configmap app", KUBE_EDITOR=editor)
    assert (done.code, "Edit cancelled, no changes made." in done.out + done.err) == (0, True)


def test_a_refused_edit_is_saved(kubectl: Kubectl, editor: str) -> None:
    kubectl("create -f -", SERVICE)
    told = kubectl.fails("edit service web", KUBE_EDITOR=editor.replace("one two", "http HTTP"))
    assert 'error: services "web" is invalid' in told
    assert "A copy of your changes has been stored to" in told
    assert kubectl.get("service web")["spec"]["ports"][0]["name"] == "http"


def test_several_objects_are_edited_at_once(kubectl: Kubectl, editor: str) -> None:
    for name in ("x", "y"):
        kubectl(f"create configmap {name} --from-literal=a=one")
    assert kubectl("edit configmaps x y", KUBE_EDITOR=editor) == "configmap/x edited\nconfigmap/y edited\n"
    assert [each["data"]["a"] for each in kubectl.get("configmaps x y")["items"]] == ["two", "two"]


def test_editing_the_status(kubectl: Kubectl, server: Server, editor: str) -> None:
    kubectl.since(24)
    kubectl("run app --image=nginx")
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/app/status"
    assert server.request("PATCH", path, {"status": {"message": "one"}})[0] == 200
    assert kubectl("edit pod app --subresource=status", KUBE_EDITOR=editor) == "pod/app edited\n"
    assert kubectl.get("pod app")["status"]["message"] == "two"
