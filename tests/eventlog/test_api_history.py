"""Tests of the API after a compaction through the API: requests for old revisions get 410, and the log still contains
these revisions.
"""

from __future__ import annotations

from random import Random

import pytest

from ctrlmgr.client import LogClient
from ctrlmgr.controllers.compaction.api_compaction import compact_api
from ctrlmgr.engine.engine import Engine
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.eventlog import Author
from tests.engine.stage import Stage

TEMPLATES = "/api/v1/namespaces/shop/podtemplates"
TOTAL = 40
CONTAINER = {"name": "test", "image": "test2"}


@pytest.fixture(params=[10_000, 0], ids=["from the cacher", "from the log"])
def stage(request: pytest.FixtureRequest) -> Stage:
    """Return a cluster with forty PodTemplates, as in Kubernetes' conformance test of API chunking."""
    stage = Stage(window=request.param)
    stage.namespace("shop")
    for number in range(TOTAL):
        body = {"metadata": {"name": f"template-{number:04}"}, "template": {"spec": {"containers": [CONTAINER]}}}
        assert stage.send("POST", TEMPLATES, body).code == 201
    return stage


def compact(stage: Stage) -> int:
    random = Random(2)
    client = LogClient(stage.log, author=Author("server"), clock=stage.clock, new_uid=lambda: new_uid(random))
    oldest = stage.log.head().revision + 1
    assert compact_api(stage.log, client, oldest)
    return oldest


def test_a_list_continues_from_the_last_key_after_a_compaction(stage: Stage) -> None:
    """Run the steps of Kubernetes' conformance test `[sig-api-machinery] Servers with support for API chunking`."""
    limit = TOTAL // 10
    first = stage.send("GET", TEMPLATES, query={"limit": str(limit)}).body["metadata"]
    assert first["remainingItemCount"] + limit == TOTAL
    assert stage.send("GET", TEMPLATES, query={"limit": str(limit), "continue": first["continue"]}).code == 200
    compact(stage)
    refused = stage.send("GET", TEMPLATES, query={"limit": str(limit), "continue": first["continue"]})
    assert (refused.code, refused.body["reason"]) == (410, "Expired")
    assert refused.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    token, found, revision = refused.body["metadata"]["continue"], limit, None
    while token:
        page = stage.send("GET", TEMPLATES, query={"limit": str(limit), "continue": token}).body
        names = [each["metadata"]["name"] for each in page["items"]]
        assert names == [f"template-{number:04}" for number in range(found, found + limit)]
        found += limit
        assert page["metadata"]["resourceVersion"] != first["resourceVersion"]
        assert revision in (None, page["metadata"]["resourceVersion"])
        revision, token = page["metadata"]["resourceVersion"], page["metadata"].get("continue")
        assert found + page["metadata"].get("remainingItemCount", 0) == TOTAL
    assert found == TOTAL


def test_exact_lists_and_watches_of_compacted_revisions_are_expired(stage: Stage) -> None:
    before = str(stage.log.head().revision)
    exact = {"resourceVersion": before, "resourceVersionMatch": "Exact"}
    assert stage.send("GET", TEMPLATES, query=exact).code == 200
    oldest = compact(stage)
    gone = stage.send("GET", TEMPLATES, query=exact)
    assert (gone.code, gone.message) == (410, "The resourceVersion for the provided list is too old.")
    watch = stage.send("GET", TEMPLATES, query={"watch": "1", "resourceVersion": before})
    (event,) = watch.body
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert event["object"]["message"] == f"too old resource version: {before} ({oldest})"


def test_newer_revisions_are_served_and_the_log_keeps_all(stage: Stage) -> None:
    before = stage.log.head().revision
    oldest = compact(stage)
    # the continued list is not older than the first page
    assert stage.send("GET", TEMPLATES, query={"resourceVersion": str(before)}).code == 200
    exact = {"resourceVersion": str(oldest), "resourceVersionMatch": "Exact"}
    assert len(stage.send("GET", TEMPLATES, query=exact).body["items"]) == TOTAL
    assert stage.send("GET", TEMPLATES, query={"watch": "1", "resourceVersion": str(oldest)}).code == 200
    assert len([*stage.log.scan()]) == oldest
    assert stage.log.floor() == 0


def test_a_server_of_the_past_serves_every_revision(stage: Stage) -> None:
    before = stage.log.head().revision
    compact(stage)
    past = Cacher(stage.log, stage.feed, is_past=True)
    assert past.oldest_for_clients() == 0
    stage.engine = Engine(stage.kinds, past, stage.log, clock=stage.clock, random=Random(1))
    exact = {"resourceVersion": str(before), "resourceVersionMatch": "Exact"}
    assert stage.send("GET", TEMPLATES, query=exact).code == 200
