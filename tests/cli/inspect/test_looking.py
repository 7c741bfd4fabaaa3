"""Tests of `ctrlmgr get`, `history`, `diff`, `why` and `blame`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import CommandResult, Run
from tests.inspection import story


@pytest.fixture
def url(tmp_path: Path) -> str:
    return story.write(f"sqlite:///{tmp_path}/story.db")


def cells(finished: CommandResult) -> list[list[str]]:
    assert finished.code == 0, finished.err
    return [line.split() for line in finished.out.splitlines()]


# Get.


def test_get_prints_kubectls_table_at_a_revision(run: Run, url: str) -> None:
    then = cells(run("get", "pods", "-n", "shop", "--at", "2026-01-02T03:04:14.5Z", "--database", url))
    assert then[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [(row[0], row[-1]) for row in then[1:]] == [("web-0", "9s"), ("web-1", "9s")]
    assert [row[0] for row in cells(run("get", "po", "-n", "shop", "--database", url))[1:]] == ["web-1"]


def test_get_wide_has_more_columns_and_all_namespaces_adds_the_namespace(run: Run, url: str) -> None:
    header, row = cells(run("get", "pods", "-A", "-o", "wide", "--database", url))
    assert (header[0], row[0]) == ("NAMESPACE", "shop")
    assert "node-a" in row


@pytest.mark.parametrize(
    ("output", "load"), [pytest.param("json", json.loads, id="json"), pytest.param("yaml", yaml.safe_load, id="yaml")]
)
def test_get_prints_an_object_or_a_list_as_yaml_or_json(
    run: Run, url: str, output: str, load: Callable[[str], Any]
) -> None:
    arguments = ("-n", "shop", "--at", "12", "-o", output, "--database", url)
    one = load(run("get", "pods", "web-0", *arguments).out)
    many = load(run("get", "pods", *arguments).out)
    assert (one["kind"], one["metadata"]["resourceVersion"]) == ("Pod", "5")
    assert (many["kind"], [each["metadata"]["name"] for each in many["items"]]) == ("List", ["web-0", "web-1"])


def test_get_prints_names_that_get_accepts(run: Run, url: str) -> None:
    name = run("get", "leases", "-n", "kube-system", "-o", "name", "--database", url).out.strip()
    assert name == "lease.coordination.k8s.io/kube-controller-manager"
    assert cells(run("get", name, "-n", "kube-system", "--database", url))[1][0] == "kube-controller-manager"


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        pytest.param(["pods,endpoints"], ["pod/web-1", "endpoints/web"], id="several kinds"),
        pytest.param(["endpoints/web", "po/web-1"], ["endpoints/web", "pod/web-1"], id="an object of each"),
        pytest.param(["pod/web-1", "po/web-1"], ["web-1", "web-1"], id="objects of one kind"),
        pytest.param(["endpoints", "web", "web"], ["web", "web"], id="several names"),
        pytest.param(["all"], ["pod/web-1", "service/web"], id="a category"),
        pytest.param(["pods,po,pod"], ["web-1"], id="one kind, named three times"),
    ],
)
def test_get_accepts_kinds_and_names_like_kubectl(run: Run, url: str, wanted: list[str], shown: list[str]) -> None:
    lines = run("get", *wanted, "-n", "shop", "--database", url).out.splitlines()
    assert [line.split()[0] for line in lines if line and not line.startswith("NAME")] == shown


def test_get_shows_existing_objects_and_names_missing_ones(run: Run, url: str) -> None:
    finished = run("get", "pod/web-1", "pod/web-0", "endpoints/none", "-n", "shop", "-o", "name", "--database", url)
    assert (finished.code, finished.out) == (1, "pod/web-1\n")
    assert 'pods "web-0" not found; endpoints "none" not found' in finished.err


def test_get_finds_kinds_that_only_the_log_contains(run: Run, url: str) -> None:
    out = run("get", "nodeports.internal.ctrlmgr.io", "--at", "10", "--database", url).out
    assert "30080" in out


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param(["get", "pods", "web-0", "-n", "shop"], 1, 'pods "web-0" not found', id="get, deleted"),
        pytest.param(["get", "pods", "pod/web-0"], 2, "cannot be mixed", id="get, two forms"),
        pytest.param(["get", "/web-0"], 2, "is not KIND/NAME", id="get, half a form"),
        pytest.param(["get"], 2, "Missing argument", id="get, nothing"),
        pytest.param(["get", "widgets"], 1, 'no resource type "widgets"', id="get, no such kind"),
        pytest.param(["get", "pods", "a", "-A"], 2, "exclude each other", id="get, a name in every namespace"),
        pytest.param(["get", "pods", "--at", "99"], 1, "beyond the head", id="get, a revision to come"),
        pytest.param(["get", "pods", "--at", "soon"], 1, "not a moment", id="get, no moment"),
        pytest.param(["history", "pods"], 2, "Missing argument 'NAME'", id="history, no name"),
        pytest.param(["history", "pods", "none"], 1, "has no events", id="history, no such object"),
        pytest.param(["diff", "--from", "9", "--to", "3"], 2, "is after --to", id="diff, the wrong way round"),
        pytest.param(["why", "pods", "none"], 1, "no event", id="why, no such object"),
        pytest.param(["blame", "pod/web-0", "-n", "shop"], 1, "did not exist at this moment", id="blame, deleted"),
    ],
)
def test_a_missing_object_is_reported(run: Run, url: str, arguments: list[str], code: int, complaint: str) -> None:
    finished = run(*arguments, "--database", url)
    assert (finished.code, finished.out) == (code, "")
    assert complaint in finished.err


def test_an_empty_result_is_no_error(run: Run, url: str) -> None:
    finished = run("get", "pods", "--database", url)
    assert (finished.code, finished.out) == (0, "")
    assert finished.err.startswith("No resources found in default namespace in sqlite:///")


# History.


def test_history_shows_author_time_change_and_cause(run: Run, url: str) -> None:
    assert run("history", "endpoints", "web", "-n", "shop", "--at", "12", "--database", url).out.splitlines() == [
        "8  2026-01-02T03:04:11.000001Z  ADDED  system:controller:endpoint-controller (ctrlmgr/0.1.0)",
        "    reconcile shop/web by endpoint-controller, term 1",
        "12  2026-01-02T03:04:14.000001Z  MODIFIED  system:controller:endpoint-controller (ctrlmgr/0.1.0)",
        "    reconcile shop/web by endpoint-controller, attempt 2, term 2",
        '    + subsets[0].addresses[ip=10.0.0.1]: {"ip":"10.0.0.1","nodeName":"node-a",'
        '"targetRef":{"kind":"Pod","name":"web-1"}}',
    ]


def test_history_has_json_output(run: Run, url: str) -> None:
    out = run("history", "pod/web-0", "-n", "shop", "--limit", "2", "-o", "json", "--database", url).out
    ready, deleted = json.loads(out)
    assert ready["changes"] == [{"path": "status.conditions[type=Ready].status", "from": "False", "to": "True"}]
    assert (ready["revision"], ready["actor"], ready["recordedAt"]) == (
        5,
        "system:node:node-a",
        "2026-01-02T03:04:08.000001Z",
    )
    assert (deleted["type"], deleted["changes"]) == ("DELETED", [])


# Diff.


def test_diff_lists_created_deleted_and_changed_objects(run: Run, url: str) -> None:
    out = run("diff", "--from", "4", "--to", "13", "-n", "shop", "--database", url).out
    assert out.splitlines() == [
        "+ endpoints shop/web  12",
        "+ endpointslices.discovery.k8s.io shop/web-x  9",
        "- pods shop/web-0  4",
        "+ pods shop/web-1  10",
    ]


def test_diff_of_one_object_lists_its_fields(run: Run, url: str) -> None:
    out = run("diff", "pod", "web-0", "-n", "shop", "--from", "4", "--to", "9", "--database", url).out
    assert out.splitlines() == [
        "~ pods shop/web-0  4 → 5",
        '    ~ status.conditions[type=Ready].status: "False" → "True"',
    ]


def test_diff_has_json_output(run: Run, url: str) -> None:
    out = run("diff", "pods", "-n", "shop", "--from", "4", "--to", "9", "-o", "json", "--database", url).out
    [record] = json.loads(out)
    assert (record["name"], record["verdict"], record["from"], record["to"]) == ("web-0", "MODIFIED", 4, 5)
    assert record["changes"][0]["path"] == "status.conditions[type=Ready].status"


def test_diff_names_its_limits(run: Run, url: str) -> None:
    assert run("compact", "--before", "13", "--resource", "pods", "--database", url).code == 0
    finished = run("diff", "--from", "4", "--to", "13", "--database", url)
    assert finished.err == "note: pods is compacted up to revision 13; its earlier objects are omitted\n"
    assert "pods" not in finished.out
    assert "+ endpoints shop/web  12" in finished.out


# Why.


def test_why_prints_the_tree_of_causes(run: Run, url: str) -> None:
    out = run("why", "endpoints", "web", "-n", "shop", "--at", "12", "--database", url).out
    author = "system:controller:endpoint-controller (ctrlmgr/0.1.0)"
    assert out.splitlines() == [
        f"12  endpoints shop/web  MODIFIED  2026-01-02T03:04:14.000001Z  {author}",
        '│  + subsets[0].addresses[ip=10.0.0.1]: {"ip":"10.0.0.1","nodeName":"node-a",'
        '"targetRef":{"kind":"Pod","name":"web-1"}}',
        "└─ reconcile of shop/web by endpoint-controller, attempt 2, term 2, error in 2.5 ms: "
        "the slice was not written",
        "   └─ 10  pods shop/web-1  ADDED  2026-01-02T03:04:12.000001Z  system:node:node-a (kubelet/v1.36)",
    ]


def test_why_names_every_cause(run: Run, url: str) -> None:
    out = run("why", "endpoints", "web", "-n", "shop", "--at", "8", "--database", url).out
    assert [line.split()[1] for line in out.splitlines() if line.startswith(("   ├─ ", "   └─ "))] == ["2", "4", "5"]


def test_effects_prints_the_tree_of_effects(run: Run, url: str) -> None:
    out = run("why", "pod", "web-1", "-n", "shop", "--effects", "--database", url).out
    revisions = [line.split()[1] for line in out.replace("│", " ").splitlines() if "MODIFIED" in line]
    assert revisions == ["12", "14", "15"]
    assert out.count("reconcile of shop/web") == 2


def test_why_has_json_output(run: Run, url: str) -> None:
    tree = json.loads(run("why", "endpoints", "web", "-n", "shop", "--depth", "1", "-o", "json", "--database", url).out)
    assert (tree["revision"], tree["reconcile"]["controller"]) == (14, "endpoint-controller")
    assert tree["reconcile"]["result"] is None
    assert [(each["revision"], each.get("cut")) for each in tree["links"]] == [(12, "too deep"), (13, None)]


# Blame.


def test_blame_prints_the_revision_of_every_field(run: Run, url: str) -> None:
    rows = cells(run("blame", "pod/web-0", "-n", "shop", "--at", "9", "--database", url))
    assert rows[0] == ["REVISION", "TIME", "ACTOR", "RECONCILE", "FIELD", "VALUE"]
    found = {row[4]: (row[0], row[5]) for row in rows[1:]}
    assert found["status.conditions[type=Ready].status"] == ("5", '"True"')
    assert found["status.phase"] == ("4", '"Running"')


def test_blame_with_history_prints_every_value(run: Run, url: str) -> None:
    out = run("blame", "pod/web-0", "-n", "shop", "--at", "9", "--history", "-o", "json", "--database", url).out
    field = [each for each in json.loads(out) if each["path"] == "status.conditions[type=Ready].status"]
    assert [(each["revision"], each["value"]) for each in field] == [(4, "False"), (5, "True")]


def test_blame_names_the_reconcile(run: Run, url: str) -> None:
    out = run("blame", "endpoints", "web", "-n", "shop", "--at", "12", "-o", "json", "--database", url).out
    [field] = [each for each in json.loads(out) if each["path"] == "subsets[0].addresses[ip=10.0.0.1].ip"]
    assert field["revision"] == 12
    assert field["reconcile"] == {"controller": "endpoint-controller", "key": "shop/web", "attempt": 2}
