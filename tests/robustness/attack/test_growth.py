"""Tests of work that must grow linearly with the size of the input: forms whose work once grew faster, and similar
forms.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from ctrlmgr.api.field import (
    LONGEST_VALUE,
    MOST_ERRORS,
    MOST_FOUND,
    ROOT,
    FieldError,
    errors_of,
    forbidden,
    invalid,
    refuse,
    tentatively,
)
from ctrlmgr.authentication import jwt
from ctrlmgr.engine.managedfields.schema_merge_types import merge_type_of
from ctrlmgr.engine.patch import strategic_merge_patch
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.selectors.label_selector_lexer import LONGEST as LONGEST_SELECTOR
from ctrlmgr.engine.validation import certificate_requests
from ctrlmgr.engine.validation.label_validation import validate_labels
from ctrlmgr.engine.validation.object_meta import validate_managed_fields, validate_owner_references
from ctrlmgr.engine.writes.body_metadata import deduplicate_owners
from ctrlmgr.errors import BadRequest
from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import PREFACE, FrameReader
from ctrlmgr.http.http2.header_blocks import BlockReader
from ctrlmgr.http.request_head import Malformed
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.kinds.core.pod.downward_api import ENVIRONMENT_FIELDS, validate_field_reference
from ctrlmgr.kinds.core.pod.scheduling import validate_spreading
from ctrlmgr.kinds.core.pod.warnings import pod_warnings
from ctrlmgr.kinds.spec_difference import difference
from ctrlmgr.logging import LONGEST, configure, mask
from tests.engine.stage import Response, Stage, builtin_kinds
from tests.http.test_parser import CHUNKED, GET, ParserResults
from tests.robustness.attack.growth import WORST, growth

STAGE = Stage()
STAGE.namespace("n")
KINDS = builtin_kinds()
NAMED: dict[str, Any] = {"metadata": {"name": "a"}}
DRY = {"dryRun": "All"}
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODS = "/api/v1/namespaces/n/pods"
POD = next(kind for kind in KINDS if kind.name == "Pod")
POD_MERGE_TYPE = merge_type_of(POD.schema)


def owners(count: int) -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": "Pod", "name": f"p-{at}", "uid": f"u-{at}", "controller": True}
        for at in range(count)
    ]


def spread(count: int) -> list[dict[str, Any]]:
    return [{"maxSkew": 1, "topologyKey": f"k{at}", "whenUnsatisfiable": "DoNotSchedule"} for at in range(count)]


def spread_keys(count: int) -> list[dict[str, Any]]:
    keys = [f"k{at}" for at in range(count)]
    selector = {"matchLabels": {}, "matchExpressions": [{"key": key, "operator": "Exists"} for key in keys]}
    return [
        {
            "maxSkew": 1,
            "topologyKey": "a",
            "whenUnsatisfiable": "DoNotSchedule",
            "matchLabelKeys": keys,
            "labelSelector": selector,
        }
    ]


def containers(count: int) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": f"c-{at}", "image": "x"} for at in range(count)]}}


def with_managers(count: int) -> dict[str, Any]:
    marks = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z"}
    managers = [{**marks, "manager": f"m{at}", "fieldsV1": {"f:data": {f"f:{at}": {}}}} for at in range(count)]
    return {"metadata": {"name": "a", "managedFields": managers}}


def created(fields: dict[str, Any]) -> object:
    answer = STAGE.send("POST", "/api/v1/namespaces/n/configmaps", fields, query={"dryRun": "All"})
    assert answer.code == 201
    return answer


def patched(patch: dict[str, Any]) -> object:
    return strategic_merge_patch(containers(len(patch["spec"]["containers"])), patch, POD.schema)


def deleting(count: int) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": f"c-{at}", "$patch": "delete"} for at in range(count)]}}


def ordered(count: int) -> dict[str, Any]:
    order = [{"name": f"c-{at}"} for at in reversed(range(count))]
    return {"spec": {**containers(count)["spec"], "$setElementOrder/containers": order}}


def retaining(count: int) -> dict[str, Any]:
    names = [f"n{at}" for at in range(count)]
    return {"metadata": {"annotations": {"$retainKeys": names, **dict.fromkeys(names, "x")}}}


def overlapping(count: int) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}] * count}]}}


def on_host_ports(count: int) -> dict[str, Any]:
    """Return Service ports that do not conflict, because each differs in an address or a number."""
    ports = [{"containerPort": 80, "hostPort": at % 2 + 1, "hostIP": f"{at}"} for at in range(count)]
    return {"spec": {"containers": [{"name": "c", "ports": ports}]}}


def claiming(count: int) -> dict[str, Any]:
    claims = [{"name": f"c-{at}", "request": "r"} for at in range(count)]
    resource_claims = [{"name": f"c-{at}", "resourceClaimName": "c"} for at in range(count)]
    return {
        "resourceClaims": resource_claims,
        "containers": [{"name": "c", "image": "x", "resources": {"claims": claims}}],
    }


def profiles(count: int) -> dict[str, Any]:
    """Return a pod with an AppArmor annotation for each of its containers."""
    key = "container.apparmor.security.beta.kubernetes.io/c-"
    annotations = {f"{key}{at}": "runtime/default" for at in range(count)}
    return {"metadata": {"name": "p", "annotations": annotations}, **containers(count)}


def sent(resource: str, spec: dict[str, Any]) -> Response:
    return STAGE.send("POST", f"/api/v1/{resource}", {**NAMED, "spec": spec}, query=DRY)


def applied(metadata: dict[str, Any]) -> Response:
    fields = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    query = {**DRY, "fieldManager": "m"}
    place = "/api/v1/namespaces/n/configmaps/a"
    return STAGE.send("PATCH", place, fields, query=query, media_type="application/apply-patch+yaml")


def received(data: bytes, piece: int = 65_536) -> None:
    heard = ParserResults(DEFAULT)
    try:
        heard.feed(data, piece)
    except Malformed:
        return


Case = tuple[Callable[[int], Any], Callable[[Any], object], int]


def block_read(block: bytes) -> None:
    BlockReader(DEFAULT).read(block)


def framed(given: bytes) -> None:
    reader = FrameReader(DEFAULT)
    list(reader.feed(PREFACE))
    for at in range(0, len(given), 8):
        list(reader.feed(given[at : at + 8]))


WORK: dict[str, Case] = {
    "owners that all are controllers": (owners, lambda given: refused(validate_owner_references(given, ROOT)), 200),
    "labels that are none": (
        lambda count: {f"-{at}-": "!" for at in range(count)},
        lambda given: refused(validate_labels(given, ROOT)),
        2000,
    ),
    "one long label": (lambda size: {"a" * size + "!": "-" * size}, lambda given: validate_labels(given, ROOT), 10_000),
    "a name of dots": (lambda size: {"a." * size + "/x": "a"}, lambda given: validate_labels(given, ROOT), 10_000),
    "beginnings of certificates": (
        lambda count: b"-----BEGIN A-----\n" * count,
        certificate_requests.problem,
        1000,
    ),
    "beginnings of certificates and one end": (
        lambda count: b"-----BEGIN A-----\n" * count + b"-----END A-----\n",
        certificate_requests.problem,
        1000,
    ),
    "beginnings and a long end": (
        lambda count: b"-----BEGIN A-----\n" * count + b"-----END " + b"x" * 20 * count,
        certificate_requests.certificate_problem,
        1000,
    ),
    "headers of certificates": (
        lambda count: (b"-----BEGIN A-----\n" + b"a: b\n" * 10) * count,
        certificate_requests.certificate_problem,
        1000,
    ),
    "a field path of brackets": (
        lambda count: {"apiVersion": "v1", "fieldPath": "['" * count},
        lambda given: validate_field_reference(given, ENVIRONMENT_FIELDS, ROOT),
        10_000,
    ),
    "constraints of spreading": (spread, lambda given: validate_spreading(given, ROOT), 500),
    "keys of one constraint": (spread_keys, lambda given: validate_spreading(given, ROOT), 500),
    "a patch of many elements": (containers, patched, 500),
    "a patch that deletes many elements": (deleting, patched, 500),
    "a patch that orders many elements": (ordered, patched, 300),
    "a patch that retains many keys": (
        retaining,
        lambda given: strategic_merge_patch({"metadata": {"annotations": {}}}, given, POD.schema),
        500,
    ),
    "managers that cannot be printed": (
        lambda count: [{"operation": "Update", "manager": "\x00" * count}],
        lambda given: refused(validate_managed_fields(given, ROOT)),
        500,
    ),
    "managers of one object": (with_managers, created, 300),
    "a selector": (
        lambda size: "a=b," * (size // 4) + "a",
        LabelSelector.parse,
        1_000,
    ),
    "URLs in a line of the log": (lambda count: "://a:" * count, mask, 10_000),
    "URLs and signs in a line of the log": (lambda count: "://a:@" * count, mask, 10_000),
    "users in a line of the log": (lambda count: "://" + "a" * count + "password=" * count, mask, 10_000),
    "a token that nests": (
        lambda depth: jwt.encoded(b'{"alg":"ES256","crit":' + b"[" * depth) + ".e30.e30",
        jwt.parse,
        10_000,
    ),
    "a head in small pieces": (
        lambda size: b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * size + b"\r\n\r\n",
        lambda given: received(given, 8),
        10_000,
    ),
    "a target in small pieces": (
        lambda size: b"GET /" + b"a" * size + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda given: received(given, 8),
        10_000,
    ),
    "headers": (lambda count: b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * count + b"\r\n", received, 1000),
    "trailers": (lambda count: CHUNKED + b"0\r\n" + b"a: b\r\n" * count, received, 1000),
    "chunks of one byte": (lambda count: CHUNKED + b"1\r\na\r\n" * count + b"0\r\n\r\n", received, 1000),
    "owners that are no others'": (owners, lambda given: deduplicate_owners({"ownerReferences": given}, []), 200),
    "networks of a node": (
        lambda count: {"podCIDRs": [f"10.0.{at >> 8}.{at & 255}/32" for at in range(count)]},
        lambda given: sent("nodes", given),
        500,
    ),
    "scopes of a quota": (
        lambda count: {"scopes": [""] * count},
        lambda given: sent("namespaces/n/resourcequotas", given),
        500,
    ),
    "ports that all overlap": (overlapping, lambda given: pod_warnings(given, ROOT), 500),
    "ports that do not overlap": (on_host_ports, lambda given: pod_warnings(given, ROOT), 500),
    "versions of a definition": (
        lambda count: [{"name": f"v{at}", "served": True, "schema": {"openAPIV3Schema": {}}} for at in range(count)],
        lambda given: STAGE.send("POST", DEFINITIONS, {**NAMED, "spec": {"versions": given}}, query=DRY),
        300,
    ),
    "profiles of containers": (profiles, lambda given: STAGE.send("POST", PODS, given, query=DRY), 300),
    "scopes of a quota that limits much": (
        lambda count: {"scopes": ["Terminating"] * count, "hard": {f"limits.{at}": "1" for at in range(count)}},
        lambda given: sent("namespaces/n/resourcequotas", given),
        500,
    ),
    "a selector of a quota": (
        lambda count: {"scopeSelector": {"matchExpressions": [{"scopeName": "Terminating"}] * count}},
        lambda given: sent("namespaces/n/resourcequotas", given),
        200,
    ),
    "lists of which one is applied over the other": (
        lambda count: [{"name": f"c-{at}"} for at in range(count)],
        lambda given: POD_MERGE_TYPE.merge({"spec": {"containers": given}}, {"spec": {"containers": given}}),
        2000,
    ),
    "claims of a container": (claiming, lambda given: sent("namespaces/n/pods", given), 500),
    "tolerations of a class": (
        lambda count: {"tolerations": [{"key": f"k{at}", "operator": "Exists"} for at in range(count)]},
        lambda given: STAGE.send("POST", CLASSES, {**NAMED, "handler": "h", "scheduling": given}, query=DRY),
        500,
    ),
    "a list applied that holds one thing over and over": (
        lambda count: {"finalizers": ["example.com/a"] * count},
        lambda given: applied({**NAMED["metadata"], **given}),
        500,
    ),
    "requests in one go": (lambda count: GET * count, received, 500),
    "fields of a block": (lambda count: b"\0\1a\1b" * count, block_read, 500),
    "fields of a block that are no request's": (lambda count: b"\x82" * count, block_read, 500),
    "a table that grows": (lambda count: b"\x40\1a\1b" * count, block_read, 500),
    "a table that is referred to": (
        lambda count: b"\x40\1a\x7f\x81\x1e" + b"b" * 4000 + b"\xbe" * count,
        block_read,
        500,
    ),
    "a frame in small pieces": (lambda size: frames.head(size, 99, 0, 0) + b"a" * size, framed, 1000),
    "a block in small frames": (
        lambda count: frames.head(0, frames.HEADERS, 0, 1) + frames.head(1, frames.CONTINUATION, 0, 1) * count,
        framed,
        500,
    ),
}


def refused(errors: list[Any]) -> None:
    str(refuse("Pod", "", "p", errors))


@pytest.mark.parametrize("name", WORK)
def test_work_grows_no_faster_than_its_input(name: str) -> None:
    make, work, size = WORK[name]
    assert growth(make, work, size) <= WORST


def test_superlinear_growth_is_detected() -> None:
    def quadratic(given: list[int]) -> int:
        return sum(1 for one in given for other in given if one == other)

    assert growth(lambda size: list(range(size)), quadratic, 200) > WORST
    assert growth(lambda size: list(range(size)), sum, 50_000) <= WORST


def test_a_refusal_lists_a_limited_number_of_errors_and_counts_the_rest() -> None:
    error = refuse("Pod", "", "p", [invalid(f"a{at}", "x", "bad") for at in range(100_000)])
    assert error.details is not None
    assert len(error.details.causes) == MOST_ERRORS
    assert str(error).endswith(f", and {100_000 - MOST_ERRORS} more]")
    assert len(str(error)) < 64 * 1024


def test_the_search_for_errors_ends_at_the_limit() -> None:
    looked_at = itertools.count()

    def find() -> list[FieldError]:
        return [invalid(f"a{at}", next(looked_at), "bad") for at in range(100_000)]

    error = refuse("Pod", "", "p", errors_of(find))
    assert next(looked_at) == MOST_FOUND
    assert str(error).endswith(f", and at least {MOST_FOUND - MOST_ERRORS} more]")
    assert len(find()) == 100_000  # a position at which no search continues


def test_errors_that_affect_a_decision_are_not_counted() -> None:
    def find() -> list[FieldError]:
        assert len(tentatively(lambda: [invalid("a", at, "bad") for at in range(2 * MOST_FOUND)])) == 2 * MOST_FOUND
        return [invalid("b", "x", "bad")]

    assert [error.field for error in errors_of(find)] == ["b"]


def test_large_errors_are_formatted_once() -> None:
    made = itertools.count()
    errors = errors_of(lambda: [invalid("a", "x" * LONGEST_VALUE, str(next(made))) for _ in range(1000)])
    assert 1 < len(errors) == next(made) < 50


def test_a_forbidden_change_is_printed_up_to_a_limit() -> None:
    before: dict[str, Any] = {"containers": [{"name": "c", "env": []}]}
    after = {"containers": [{"name": "c", "env": [{"name": f"A{at}"} for at in range(50_000)]}]}
    assert difference("PodSpec", before, after).count("\n") < 20_000
    assert "... and 48000 more" in difference("PodSpec", before, after)


def test_the_text_of_an_error_is_limited() -> None:
    assert len(forbidden("spec", "x" * 1_000_000).body) < 100_000


def test_the_search_for_warnings_ends_at_the_limit() -> None:
    assert 10 < len(pod_warnings(overlapping(10_000), ROOT)) < 1000
    assert pod_warnings(on_host_ports(100), ROOT) == []


def test_an_apply_lists_a_limited_number_of_problems() -> None:
    finalizers = {"name": "a", "finalizers": ["example.com/a"] * 10_000}
    assert len(applied(finalizers).message) < 100_000
    assert applied(finalizers).message.endswith("and more")
    assert len(applied({"name": "a", "labels": ["x" * 1_000_000]}).message) < 100_000


def test_the_size_of_a_refusal_is_bounded() -> None:
    owned = validate_owner_references(owners(1600), ROOT)
    error = refuse("Pod", "", "p", owned)
    assert error.details is not None
    assert sum(len(cause.message) for cause in error.details.causes) < 200_000
    assert len(str(error)) < 200_000


@pytest.mark.parametrize("value", ["x" * 1_000_000, ["é" * 10] * 100_000])
def test_an_error_shows_a_limited_part_of_a_value(value: Any) -> None:
    shown = invalid("a", value, "bad").body
    assert len(shown) < 8 * LONGEST_VALUE
    assert shown.endswith(" more: bad")


@pytest.mark.parametrize("parse", [LabelSelector.parse, FieldSelector.parse])
def test_the_length_of_a_selector_is_limited(parse: Callable[[str], object]) -> None:
    with pytest.raises(BadRequest, match=f"at most {LONGEST_SELECTOR}"):
        parse("a=b," * LONGEST_SELECTOR)


def test_a_logged_value_is_truncated() -> None:
    written = io.StringIO()
    configure(level="info", format="json", stream=written)
    structlog.get_logger("attack").warning("request failed", path="/" + "a" * 1_000_000)
    assert len(written.getvalue()) < LONGEST + 1000
    assert "more characters)" in written.getvalue()


@pytest.mark.parametrize(
    "token",
    [
        jwt.encoded(b"\xff\xfe") + ".e30.e30",
        jwt.encoded(b'{"alg":"\xff"}') + ".e30.e30",
        jwt.encoded(b'{"alg":"ES256","crit":' + b"[" * 100_000) + ".e30.e30",
        jwt.encoded(b"[" * 100_000) + ".e30.e30",
        "a.b.c",
        "..",
    ],
)
def test_an_unreadable_token_is_refused(token: str) -> None:
    assert jwt.parse(token) is None
