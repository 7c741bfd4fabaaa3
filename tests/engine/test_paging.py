from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.engine.paging import Place, decode_continue, encode_continue
from ctrlmgr.errors import BadRequest
from tests.engine.stage import Response, Stage

MAPS = "/api/v1/namespaces/shop/configmaps"


def token(**fields: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


@given(
    st.integers(-1, 2**53).filter(bool), st.from_regex(r"([a-z0-9-]{1,9}/)?[a-z0-9.-]{0,9}[a-z0-9]\x00", fullmatch=True)
)
def test_a_continue_token_leads_to_its_position(revision: int, start: str) -> None:
    assert decode_continue(encode_continue(Place(revision, start))) == (revision, start)


def test_a_continue_token_is_formatted_like_kubernetes() -> None:
    padded = encode_continue(Place(7, "web\0")) + "=="
    assert base64.urlsafe_b64decode(padded) == b'{"v":"meta.k8s.io/v1","rv":7,"start":"web\\u0000"}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("garbage!", "Only base64 data is allowed"),
        ("é", "Only base64 data is allowed"),
        ("\ud800", "surrogates not allowed"),
        (base64.b64encode(b"{").decode(), "truncated"),
        (token(v="v2", rv=1, start="a"), 'server does not recognize this encoded version "v2"'),
        (token(v="meta.k8s.io/v1", rv=0, start="a"), "incorrect encoded start resourceVersion"),
        (token(v="meta.k8s.io/v1", rv=1, start=""), "encoded start key empty"),
        (token(v="meta.k8s.io/v1", rv=1, start="../b"), "../b"),
        (token(v="meta.k8s.io/v1", rv=1, start="//b"), "//b"),
        (token(v="meta.k8s.io/v1", rv=1, start="a/../../b"), "a/../../b"),
    ],
)
def test_an_invalid_continue_token_is_a_bad_request(text: str, reason: str) -> None:
    with pytest.raises(BadRequest, match="continue") as refused:
        decode_continue(text)
    assert reason in str(refused.value)


def stage_of(count: int, **settings: int) -> Stage:
    stage = Stage(**settings)  # type: ignore[arg-type]  # only numbers are set here
    stage.namespace("shop")
    for number in range(count):
        body = {"metadata": {"name": f"o{number}", "labels": {"even": str(number % 2 == 0).lower()}}}
        assert stage.send("POST", MAPS, body).code == 201
    return stage


def names(response: Response) -> list[str]:
    assert response.code == 200, response.body
    return [item["metadata"]["name"] for item in response.body["items"]]


def pages(stage: Stage, path: str = MAPS, **query: str) -> list[list[str]]:
    found: list[list[str]] = []
    while True:
        response = stage.send("GET", path, query=query)
        found.append(names(response))
        token = response.body["metadata"].get("continue")
        if not token:
            return found
        query["continue"] = token


def test_pages_add_up_to_the_list() -> None:
    stage = stage_of(7)
    assert pages(stage, limit="3") == [["o0", "o1", "o2"], ["o3", "o4", "o5"], ["o6"]]
    assert pages(stage, "/api/v1/configmaps", limit="4") == [["o0", "o1", "o2", "o3"], ["o4", "o5", "o6"]]
    assert pages(stage, limit="7") == [[f"o{number}" for number in range(7)]]


@pytest.mark.parametrize(
    ("query", "remaining"),
    [({"limit": "3"}, 4), ({"limit": "7"}, None), ({"limit": "2", "labelSelector": "even=true"}, None)],
)
def test_the_remaining_count_is_returned_unless_a_selector_is_given(
    query: dict[str, str], remaining: int | None
) -> None:
    assert stage_of(7).send("GET", MAPS, query=query).body["metadata"].get("remainingItemCount") == remaining


def test_a_selected_page_is_filled_from_further_objects() -> None:
    assert pages(stage_of(7), limit="2", labelSelector="even=true") == [["o0", "o2"], ["o4", "o6"]]
    assert pages(stage_of(8), limit="2", labelSelector="even=true") == [["o0", "o2"], ["o4", "o6"], []]


@pytest.mark.parametrize("window", [10_000, 0])  # the cacher or only the log has the later changes
def test_later_pages_show_the_revision_of_the_first(window: int) -> None:
    stage = stage_of(7, window=window)
    first = stage.send("GET", MAPS, query={"limit": "2"})
    stage.send("POST", MAPS, {"metadata": {"name": "o1a"}})
    stage.send("DELETE", f"{MAPS}/o4")
    stage.send("PATCH", f"{MAPS}/o5", {"data": {"a": "1"}}, media_type="application/merge-patch+json")
    second = stage.send("GET", MAPS, query={"limit": "3", "continue": first.body["metadata"]["continue"]})
    assert names(second) == ["o2", "o3", "o4"]
    assert second.body["metadata"]["remainingItemCount"] == 2
    assert second.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]
    third = stage.send("GET", MAPS, query={"continue": second.body["metadata"]["continue"]})
    assert names(third) == ["o5", "o6"]
    assert "data" not in third.body["items"][0]


def test_a_compacted_page_returns_a_token_to_continue() -> None:
    stage = stage_of(4, window=0)
    token = stage.send("GET", MAPS, query={"limit": "1"}).body["metadata"]["continue"]
    stage.send("DELETE", f"{MAPS}/o1")
    stage.log.compact(stage.log.head().revision)
    gone = stage.send("GET", MAPS, query={"continue": token, "limit": "2"})
    assert (gone.code, gone.body["reason"]) == (410, "Expired")
    assert gone.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    goes_on = stage.send("GET", MAPS, query={"continue": gone.body["metadata"]["continue"], "limit": "1"})
    assert names(goes_on) == ["o2"]
    assert goes_on.body["metadata"]["remainingItemCount"] == 1


def test_a_continue_token_excludes_a_resource_version() -> None:
    stage = stage_of(3)
    first = stage.send("GET", MAPS, query={"limit": "1"}).body["metadata"]
    query = {"continue": first["continue"], "resourceVersion": first["resourceVersion"]}
    refused = stage.send("GET", MAPS, query=query)
    assert (refused.code, refused.message) == (400, "specifying resource version is not allowed when using continue")
    assert names(stage.send("GET", MAPS, query={**query, "resourceVersion": "0"})) == ["o1", "o2"]
