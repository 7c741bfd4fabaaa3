"""Tests of the spans of requests, and of the header that passes a trace on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ctrlmgr.authentication.user import User
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts
from ctrlmgr.tracing import spans
from tests.server.site import CONFIG_MAPS, Site, make, running
from tests.tracing.memory_tracer import MemoryTracer

CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class InGroup(AllowEverything):
    """An authenticator that takes the group of the user from a header."""

    async def authenticate(self, parts: RequestParts) -> User:
        return User("alice", "", (dict(parts.headers).get(b"x-group", b"").decode(),))


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running(make(access=InGroup())) as site:
        yield site


@pytest.mark.parametrize(
    ("group", "is_trusted"), [("system:masters", True), ("system:monitoring", True), ("system:authenticated", False)]
)
def test_only_privileged_groups_continue_the_trace_of_their_request(site: Site, group: str, is_trusted: bool) -> None:
    tracer = MemoryTracer()
    with spans.installed(tracer):
        assert site.ask(CONFIG_MAPS, headers={"X-Group": group, "Traceparent": CONTEXT}).status == 200
    (span,) = tracer.spans
    assert span.name == "GET /api/v1/namespaces/{:namespace}/configmaps"
    assert (str(span.above) == CONTEXT, span.links) == ((True, ()) if is_trusted else (False, (CONTEXT,)))
    assert (span.attributes["http.status_code"], span.error) == (200, "")


def test_a_write_has_spans_of_its_append_and_each_request_ends_its_span(site: Site) -> None:
    tracer = MemoryTracer()
    body = {"metadata": {"name": "traced"}}
    with spans.installed(tracer):
        assert site.ask(CONFIG_MAPS, "POST", body).status == 201
        assert site.ask(CONFIG_MAPS, "POST", body).status == 409
        assert site.ask("/nowhere").status == 404
    assert [each.name for each in tracer.spans if each.above is None] == [
        "POST /api/v1/namespaces/{:namespace}/configmaps",
        "POST /api/v1/namespaces/{:namespace}/configmaps",
        "GET",
    ]
    append = next(each for each in tracer.spans if each.name == "append")
    assert append.above == tracer.spans[0].at
    assert all(each.error == "" for each in tracer.spans)


def test_without_a_tracer_a_request_has_no_span(site: Site) -> None:
    assert site.ask(CONFIG_MAPS, headers={"Traceparent": CONTEXT}).status == 200
    assert spans.current() == ""
