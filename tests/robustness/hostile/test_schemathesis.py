"""Tests with schemathesis, and with our own generator, of the server's OpenAPI documents: no request causes an internal
error.

The server refuses most requests of schemathesis when it decodes them, but accepts more requests of our generator
`questions`. `python -m tests.robustness.hostile.fuzz` is the longer form, which tests all operations of the documents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok

from tests.robustness.hostile.fuzz import Fuzzer
from tests.robustness.hostile.raw import Reply
from tests.robustness.serving import ConfiguredServer
from tests.robustness.statuses import is_status

pytestmark = pytest.mark.timeout(400)  # the start of schemathesis is slow on a busy machine

EXAMPLES = 4
"""The number of requests for each operation."""

REQUESTS = 700
"""The number of requests of our own generator, for all operations together."""

GROWTH = 64 << 20
"""Maximum number of bytes by which these requests may increase the resident memory of a newly started server."""

DOCUMENTS = {
    "configmaps": "/openapi/v3/api/v1",
    "endpointslices": "/openapi/v3/apis/discovery.k8s.io/v1",
    "priorityclasses": "/openapi/v2",
}
"""The paths that are tested in each OpenAPI document; testing all paths would take minutes."""


@pytest.fixture(scope="module")
def session(target: ConfiguredServer) -> requests.Session:
    session = requests.Session()
    session.trust_env = False  # a redirect may name another host
    session.verify = str(target.authority)
    session.headers.update({"authorization": f"Bearer {target.site.token}"})
    return session


def part_of(document: Any, resource: str) -> Any:
    """Return a document with the paths of one resource, except streams and paths to a node."""
    about = [path for path in document["paths"] if resource in path and "/watch/" not in path and "/proxy" not in path]
    return {**document, "paths": {path: document["paths"][path] for path in about}}


def tried(operation: Any, check: Callable[[Any], None]) -> None:
    """Send generated requests for an operation; every run sends the same requests."""

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy())
    def ask(case: Any) -> None:
        check(case)

    ask()


@pytest.mark.parametrize(("resource", "path"), DOCUMENTS.items())
def test_schemathesis_finds_no_failure(
    target: ConfiguredServer, session: requests.Session, resource: str, path: str
) -> None:
    document = session.get(target.url + path).json()
    answers = []

    def check(case: Any) -> None:
        case.query = {name: value for name, value in (case.query or {}).items() if name not in ("watch", "limit")}
        response = case.call(base_url=target.url, session=session, verify=session.verify)
        case.validate_response(response, checks=[not_a_server_error])
        reply = Reply(response.status_code, response.headers, response.content)
        assert reply.code < 400 or reply.body == b"404 page not found\n" or is_status(reply), reply
        answers.append(reply.code)

    for each in schemathesis.openapi.from_dict(part_of(document, resource)).get_all_operations():
        assert isinstance(each, Ok), each.err()
        tried(each.ok(), check)
    assert len(answers) >= EXAMPLES * 3


def test_generated_requests_find_no_failure_and_memory_is_stable(target: ConfiguredServer) -> None:
    before = target.resident()
    fuzzer = Fuzzer(target, seed=1)
    assert fuzzer.round(REQUESTS) == REQUESTS
    fuzzer.close()
    assert fuzzer.wrong == []
    assert {"POST 201", "POST 422", "PATCH 422", "DELETE 200"} <= fuzzer.answers.keys()
    assert {"PUT 200", "PATCH 200", "PATCH 201"} & fuzzer.answers.keys()
    assert target.resident() - before < GROWTH
