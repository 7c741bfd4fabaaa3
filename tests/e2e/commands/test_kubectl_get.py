"""Tests of kubectl get: all output formats, and all ways to select objects."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.e2e.kubectl import Kubectl, squeezed
from tests.e2e.serving import Server

ONE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one", "labels": {"app": "web", "tier": "front"}},
    "data": {"size": "9"},
}
TWO = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "two", "labels": {"app": "db"}},
    "data": {"size": "1", "more": "<&>"},
}
WEB = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53}]},
}


@pytest.fixture(scope="module")
def stocked(anywhere: Kubectl, server: Server) -> Kubectl:
    """kubectl in a namespace that this module's tests share, with a Service and two ConfigMaps beside the namespace's
    default ConfigMap.
    """
    kubectl = anywhere.within(server.new_namespace())
    kubectl("create -f -", {"apiVersion": "v1", "kind": "List", "items": [ONE, TWO, WEB]})
    return kubectl


PUBLISHED = "kube-root-ca.crt"
"""The name of the ConfigMap that every namespace contains."""


def names(listed: str) -> list[str]:
    return [line.partition("/")[2] for line in listed.split()]


def test_tables_have_kubernetes_columns(stocked: Kubectl) -> None:
    maps = stocked("get configmaps --show-labels -L app").splitlines()
    assert maps[0].split() == ["NAME", "DATA", "AGE", "APP", "LABELS"]
    assert [line.split()[:2] + line.split()[3:] for line in maps[1:]] == [
        [PUBLISHED, "1", "<none>"],
        ["one", "1", "web", "app=web,tier=front"],
        ["two", "2", "db", "app=db"],
    ]
    head, row = stocked("get svc web").splitlines()
    address = stocked.get("svc web")["spec"]["clusterIP"]
    assert head.split() == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert row.split()[:5] == ["web", "ClusterIP", address, "<none>", "80/TCP,53/TCP"]
    assert stocked("get svc -o wide").split()[6] == "SELECTOR"
    assert stocked("get svc --no-headers -o wide").split()[6] == "app=web"
    assert [stocked.namespace, "one"] in [line.split()[:2] for line in stocked("get cm -A").splitlines()]


def test_without_server_print_tables_have_names_and_ages(stocked: Kubectl) -> None:
    assert stocked("get cm --server-print=false").splitlines()[0].split() == ["NAME", "AGE"]


def test_objects_are_printed_as_yaml_and_json(stocked: Kubectl) -> None:
    document = yaml.safe_load(stocked("get configmap one -o yaml"))
    assert document == stocked.get("configmap one")
    assert document["apiVersion"] == "v1"
    assert document["data"] == {"size": "9"}
    listed = stocked.get("configmaps")
    assert (listed["kind"], listed["apiVersion"]) == ("List", "v1")
    assert [each["data"].get("more") for each in listed["items"]] == [None, None, "<&>"]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param("name", f"configmap/{PUBLISHED}\nconfigmap/one\nconfigmap/two\n", id="name"),
        pytest.param("jsonpath='{.items[*].data.size}'", "9 1", id="jsonpath"),
        pytest.param("jsonpath='{range .items[?(@.data.more)]}{.metadata.name}{\"!\"}{end}'", "two!", id="filter"),
        pytest.param(
            "custom-columns=WHO:.metadata.name,MORE:.data.more",
            f"WHO MORE\n{PUBLISHED} <none>\none <none>\ntwo <&>",
            id="columns",
        ),
        pytest.param(
            "go-template='{{range .items}}{{.metadata.name}} {{end}}'", f"{PUBLISHED} one two ", id="go-template"
        ),
    ],
)
def test_parts_of_objects_are_printed(stocked: Kubectl, output: str, expected: str) -> None:
    assert squeezed(stocked(f"get cm -o {output}")) == squeezed(expected)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("-l app=web", ["one"]),
        ("-l app", ["one", "two"]),
        ("-l '!tier'", [PUBLISHED, "two"]),
        ("-l 'app in (web, db), tier!=front'", ["two"]),
        ("-l 'app notin (web)'", [PUBLISHED, "two"]),
        ("--field-selector metadata.name=two", ["two"]),
        ("--field-selector metadata.name!=two -l app", ["one"]),
        ("-l app=none", []),
        ("--sort-by={.data.size}", [PUBLISHED, "two", "one"]),
        ("--sort-by=.metadata.name", [PUBLISHED, "one", "two"]),
        ("one two", ["one", "two"]),
        ("two nothing --ignore-not-found", ["two"]),
    ],
)
def test_objects_are_selected(stocked: Kubectl, selection: str, expected: list[str]) -> None:
    assert names(stocked(f"get configmaps {selection} -o name")) == expected


def test_a_list_is_read_in_chunks(stocked: Kubectl) -> None:
    done = stocked.run("get cm --chunk-size=1 -o name -v=6")
    assert names(done.out) == [PUBLISHED, "one", "two"]
    requests = [line for line in done.err.splitlines() if "/configmaps?" in line and "GET" in line]
    assert ["continue=" in each for each in requests] == [False, True, True], done.err


def test_several_kinds_at_once(stocked: Kubectl) -> None:
    namespace = stocked.namespace
    assert stocked("get configmaps,svc -o name").split() == [
        f"configmap/{PUBLISHED}",
        "configmap/one",
        "configmap/two",
        "service/web",
    ]
    assert stocked(f"get cm/two namespace/{namespace} -o name").split() == ["configmap/two", f"namespace/{namespace}"]
    lists = stocked("get cm,svc")
    assert [line.split()[0] for line in lists.splitlines() if line] == [
        "NAME", f"configmap/{PUBLISHED}", "configmap/one", "configmap/two", "NAME", "service/web",
    ]  # fmt: skip


def test_get_all_lists_the_category(kubectl: Kubectl) -> None:
    kubectl("create deployment app --image=nginx")
    kubectl("create job work --image=busybox")
    kubectl("create configmap not-this")
    kubectl("create service clusterip web --tcp=80")
    assert kubectl("get all -o name").split() == ["service/web", "deployment.apps/app", "job.batch/work"]


def test_get_accepts_files(stocked: Kubectl) -> None:
    assert stocked("get -f - -o name", {"apiVersion": "v1", "kind": "List", "items": [ONE, WEB]}) == (
        "configmap/one\nservice/web\n"
    )


def test_managed_fields_name_the_writers(kubectl: Kubectl) -> None:
    kubectl("create configmap one --from-literal=a=b")
    kubectl("label cm/one more=1")
    flag = "--show-managed-fields" if kubectl.minor >= 21 else ""
    entries = json.loads(kubectl(f"get cm one -o json {flag}"))["metadata"]["managedFields"]
    assert [(each["manager"], each["operation"]) for each in entries] == [
        ("kubectl-create", "Update"),
        ("kubectl-label", "Update"),
    ]
    assert entries[0]["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}
    assert entries[1]["fieldsV1"] == {"f:metadata": {"f:labels": {".": {}, "f:more": {}}}}


def test_raw_paths(stocked: Kubectl, server: Server) -> None:
    maps = f"/api/v1/namespaces/{stocked.namespace}/configmaps"
    found = json.loads(stocked(f"get --raw '{maps}?limit=1'"))
    assert [each["metadata"]["name"] for each in found["items"]] == [PUBLISHED]
    assert found["metadata"]["remainingItemCount"] == 2
    assert json.loads(stocked(f"get --raw {maps}/one")) == server.request("GET", f"{maps}/one")[1]
    assert stocked.fails("get --raw /nothing") == (
        "Error from server (NotFound): the server could not find the requested resource\n"
    )


def test_subresources_have_tables(kubectl: Kubectl) -> None:
    kubectl.since(24)
    kubectl("create deployment app --image=nginx --replicas=3")
    columns, row = squeezed(kubectl("get deployment app --subresource=status")).splitlines()
    assert columns == "NAME READY UP-TO-DATE AVAILABLE AGE"
    assert row.split()[:4] == ["app", "0/3", "0", "0"]
    columns, row = squeezed(kubectl("get deployment app --subresource=scale")).splitlines()
    assert columns == "NAME DESIRED AVAILABLE AGE"
    assert row.split()[:3] == ["app", "3", "0"]


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("cm nothing", 'Error from server (NotFound): configmaps "nothing" not found\n'),
        ("cm one nothing", 'Error from server (NotFound): configmaps "nothing" not found\n'),
        ("nothing", 'error: the server doesn\'t have a resource type "nothing"\n'),
        (
            "cm --field-selector size=9",
            'Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector "", '
            'field selector "size=9": "size" is not a known field selector: only "metadata.name", '
            '"metadata.namespace"\n',
        ),
        (
            "cm -l 'a b'",
            'Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector '
            '"a b", field selector "": unable to parse requirement: found \'b\', expected: in, notin, =, ==, !=, gt, '
            "lt\n",
        ),
    ],
)
def test_get_of_a_missing_object_or_kind_is_refused(stocked: Kubectl, what: str, complaint: str) -> None:
    assert stocked.fails(f"get {what}") == complaint


def test_an_empty_list_is_no_error(stocked: Kubectl) -> None:
    assert stocked.run("get secrets") == (0, "", f"No resources found in {stocked.namespace} namespace.\n")
