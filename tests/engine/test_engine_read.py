from __future__ import annotations

import pytest

from ctrlmgr.api.resource import NAMESPACES, Key, Resource
from ctrlmgr.engine.blocking_driver import Driver
from ctrlmgr.engine.operations import Append, Await, Operation, Read, Refresh, Target
from ctrlmgr.engine.request_options import Body, WriteOptions
from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog.event import Author, Cause, EventType, Fence, Proposal
from tests.engine.stage import REQUESTER, Response, Stage

MAPS = "/api/v1/namespaces/shop/configmaps"
MERGE = "application/merge-patch+json"
AT_3 = {"resourceVersion": "3", "resourceVersionMatch": "Exact"}


@pytest.fixture(params=[10_000, 0], ids=["from the cacher", "from the log"])
def stage(request: pytest.FixtureRequest) -> Stage:
    """Return a cluster with these revisions: 1 creates the namespace, 2 creates a, 3 creates b, 4 changes a, 5 deletes
    b, 6 creates other/c.
    """
    stage = Stage(window=request.param)
    stage.namespace("shop")
    stage.send("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    stage.send("POST", MAPS, {"metadata": {"name": "b"}})
    stage.send("PATCH", f"{MAPS}/a", {"data": {"k": "2"}}, media_type=MERGE)
    stage.send("DELETE", f"{MAPS}/b")
    stage.namespace("shop-2")
    stage.send("POST", MAPS.replace("shop", "shop-2"), {"metadata": {"name": "c"}})
    return stage


def shown(response: Response) -> str:
    assert response.code == 200, response.body
    items = [f"{item['metadata']['name']}@{item['metadata']['resourceVersion']}" for item in response.body["items"]]
    return f"{response.body['metadata']['resourceVersion']}: {' '.join(items)}"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "7: a@4"),
        ({"resourceVersion": "0"}, "7: a@4"),
        ({"resourceVersion": "2"}, "7: a@4"),
        ({"resourceVersion": "2", "resourceVersionMatch": "NotOlderThan"}, "7: a@4"),
        ({"resourceVersion": "2", "resourceVersionMatch": "Exact"}, "2: a@2"),
        ({"resourceVersion": "3", "resourceVersionMatch": "Exact"}, "3: a@2 b@3"),
        ({"resourceVersion": "4", "resourceVersionMatch": "Exact"}, "4: a@4 b@3"),
        ({"resourceVersion": "1", "resourceVersionMatch": "Exact"}, "1: "),
        ({"resourceVersion": "7", "resourceVersionMatch": "Exact"}, "7: a@4"),
        ({"resourceVersion": "3", "limit": "5"}, "3: a@2 b@3"),
        ({"resourceVersion": "3", "limit": "5", "resourceVersionMatch": "NotOlderThan"}, "7: a@4"),
        ({"resourceVersion": "0", "limit": "1"}, "7: a@4"),
        ({**AT_3, "fieldSelector": "metadata.name=b"}, "3: b@3"),
        ({"fieldSelector": "metadata.name=a"}, "7: a@4"),
        ({"fieldSelector": "metadata.name=z"}, "7: "),
        ({"fieldSelector": "metadata.namespace=shop-2"}, "7: "),
    ],
)
def test_a_list_is_at_least_as_recent_as_requested(stage: Stage, query: dict[str, str], expected: str) -> None:
    assert shown(stage.send("GET", MAPS, query=query)) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "7: c@7 a@4"),  # the key "shop-2/" is sorted before "shop/"
        ({"fieldSelector": "metadata.namespace=shop"}, "7: a@4"),
        ({"fieldSelector": "metadata.namespace!=shop"}, "7: c@7"),
        ({"fieldSelector": "metadata.namespace=shop-2,metadata.name=c"}, "7: c@7"),
        (
            {"resourceVersion": "3", "resourceVersionMatch": "Exact", "fieldSelector": "metadata.namespace=shop"},
            "3: a@2 b@3",
        ),
    ],
)
def test_a_list_of_all_namespaces(stage: Stage, query: dict[str, str], expected: str) -> None:
    assert shown(stage.send("GET", "/api/v1/configmaps", query=query)) == expected


def test_cluster_scoped_kinds_are_listed_by_name(stage: Stage) -> None:
    assert shown(stage.send("GET", "/api/v1/namespaces")) == "7: shop@1 shop-2@6"
    assert shown(stage.send("GET", "/api/v1/namespaces", query={"fieldSelector": "metadata.name=shop"})) == "7: shop@1"
    assert shown(stage.send("GET", "/api/v1/namespaces", query={"fieldSelector": "metadata.namespace=x"})) == "7: "


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        (
            {"resourceVersion": "abc"},
            400,
            'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": '
            "invalid syntax",
        ),
        (
            {"resourceVersion": "-1"},
            400,
            'invalid resource version: resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": '
            "invalid syntax",
        ),
        (
            {"resourceVersion": "9" * 20},
            400,
            f'invalid resource version: resourceVersion: Invalid value: "{"9" * 20}": strconv.ParseUint: '
            f'parsing "{"9" * 20}": value out of range',
        ),
        (
            {"resourceVersion": "99", "resourceVersionMatch": "Exact"},
            504,
            "Timeout: Too large resource version: 99, current: 7",
        ),
        ({"resourceVersion": "99"}, 504, "Timeout: Too large resource version: 99, current: 7"),
    ],
)
def test_lists_at_invalid_revisions_are_refused(stage: Stage, query: dict[str, str], code: int, message: str) -> None:
    refused = stage.send("GET", MAPS, query=query)
    assert (refused.code, refused.message) == (code, message)


def test_a_compacted_revision_is_expired() -> None:
    stage = Stage(window=0)
    stage.namespace("shop")
    stage.send("POST", MAPS, {"metadata": {"name": "a"}})
    stage.log.compact(2)
    refused = stage.send("GET", MAPS, query={"resourceVersion": "1", "resourceVersionMatch": "Exact"})
    assert (refused.code, refused.body["reason"]) == (410, "Expired")
    assert refused.message == "The resourceVersion for the provided list is too old."


@pytest.mark.parametrize("version", ["", "0", "4"])
def test_a_get_returns_the_latest_object(stage: Stage, version: str) -> None:
    response = stage.send("GET", f"{MAPS}/a", query={"resourceVersion": version} if version else {})
    assert (response.code, response.body["data"]) == (200, {"k": "2"})


@pytest.mark.parametrize(
    ("name", "version", "code", "message"),
    [
        ("z", "", 404, 'configmaps "z" not found'),
        ("a", "abc", 500, 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'),
        ("a", "99", 504, "Timeout: Too large resource version: 99, current: 7"),
    ],
)
def test_invalid_reads_are_refused(stage: Stage, name: str, version: str, code: int, message: str) -> None:
    refused = stage.send("GET", f"{MAPS}/{name}", query={"resourceVersion": version} if version else {})
    assert (refused.code, refused.message) == (code, message)


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "code", "before"),
    [
        pytest.param("GET", f"{MAPS}/a", {"resourceVersion": "{}"}, None, 500, "resourceVersion: Invalid", id="get"),
        pytest.param("GET", MAPS, {"resourceVersion": "{}"}, None, 400, "invalid resource version: ", id="list"),
        pytest.param("DELETE", MAPS, {"resourceVersion": "{}"}, None, 400, "invalid resource version: ", id="delete"),
        pytest.param("GET", MAPS, {"resourceVersion": "{}", "watch": "1"}, None, 500, "resourceVersion: ", id="watch"),
        pytest.param("PUT", f"{MAPS}/a", {}, {"metadata": {"name": "a", "resourceVersion": "{}"}}, 500, "", id="put"),
        pytest.param("PATCH", f"{MAPS}/a", {}, {"metadata": {"resourceVersion": "{}"}}, 500, "", id="patch"),
        pytest.param("GET", MAPS, {"limit": "{}"}, None, 400, "", id="limit"),
    ],
)
@pytest.mark.parametrize(
    ("text", "problem"),
    [("abc", "invalid syntax"), ("1.5", "invalid syntax"), (str(2**64), "value out of range"), ("9" * 5000, "value")],
)
def test_an_invalid_resource_version_is_refused(
    stage: Stage,
    method: str,
    path: str,
    query: dict[str, str],
    body: dict[str, dict[str, str]] | None,
    code: int,
    before: str,
    text: str,
    problem: str,
) -> None:
    given = {key: value.format(text) for key, value in query.items()}
    filled = body and {"metadata": {key: value.format(text) for key, value in body["metadata"].items()}}
    answer = stage.send(
        method, path, filled, query=given, media_type=MERGE if method == "PATCH" else "application/json"
    )
    assert answer.code == code
    assert answer.message.startswith(before)
    assert f'parsing "{text}": {problem}' in answer.message


def test_a_driver_executes_operations_and_throws_their_errors() -> None:
    stage = Stage()

    def operation() -> Operation[list[object]]:
        seen: list[object] = []
        seen.append((yield Refresh()))
        seen.append((yield Read(lambda: 42)))
        try:
            yield Read(_fail)
        except LogUnavailable as error:
            seen.append(str(error))
        seen.append((yield Await(99, 3.0)))
        try:
            yield Append((), REQUESTER.author)
        except Exception as error:
            seen.append(type(error).__name__)
        return seen

    assert stage.driver.run(operation()) == [None, 42, "away", None, "BadRequest"]

    def failing() -> Operation[None]:
        yield Read(_fail)

    with pytest.raises(LogUnavailable):
        stage.driver.run(failing())


def test_a_driver_passes_fence_and_cause() -> None:
    stage = Stage()
    fence, cause = Fence("leader", 3, takeover=True), Cause(7, "c", "k", 1, 0, (1,))
    driver = Driver(stage.log, stage.feed, stage.cacher, fence=fence, cause=cause)
    kind = stage.kinds.find("", "v1", "namespaces")
    assert kind is not None
    body = Body("application/json", b'{"metadata":{"name":"shop"}}')
    driver.run(stage.engine.create(Target(kind, "", ""), body, WriteOptions(), REQUESTER))
    (event,) = stage.log.events_after(0)
    assert (event.term, event.reconcile) == (3, 7)


def _fail() -> None:
    raise LogUnavailable("away")


@pytest.mark.parametrize("query", [{"resourceVersionMatch": "Exact"}, {"limit": "1"}], ids=["exact", "page"])
@pytest.mark.parametrize(("revision", "code"), [("4", 410), ("9", 410), ("10", 200)])
def test_a_recreated_namespace_shows_nothing_of_its_predecessor(
    stage: Stage, query: dict[str, str], revision: str, code: int
) -> None:
    for obj in stage.cacher.list(Resource("", "configmaps")):
        stage.log.append([Proposal(EventType.DELETED, obj, obj.revision)], author=Author("a controller"))
    namespace = stage.log.get(NAMESPACES, Key("", "shop"))
    assert namespace is not None
    stage.log.append([Proposal(EventType.DELETED, namespace, namespace.revision)], author=Author("a controller"))
    stage.namespace("shop")
    assert stage.log.head().revision == 11
    assert stage.send("GET", MAPS, query={**query, "resourceVersion": revision}).code == code
    watch = stage.send("GET", MAPS, query={"watch": "1", "resourceVersion": revision})
    assert [event["object"].get("code") for event in watch.body] == ([code] if code == 410 else [])


def test_an_updated_namespace_shows_its_past(stage: Stage) -> None:
    stage.send("PATCH", "/api/v1/namespaces/shop", {"metadata": {"labels": {"team": "blue"}}}, media_type=MERGE)
    assert shown(stage.send("GET", MAPS, query=AT_3)) == "3: a@2 b@3"
