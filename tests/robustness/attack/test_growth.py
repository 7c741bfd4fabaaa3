"""Work that must not grow faster than its input: what once did, and the ideas behind it."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from ctrlmgr.api.field import LONGEST_VALUE, MOST_ERRORS, ROOT, invalid, refuse
from ctrlmgr.authentication import jwt
from ctrlmgr.engine.patch import strategic_merge_patch
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.selectors.tokens import LONGEST as LONGEST_SELECTOR
from ctrlmgr.engine.validation import certificate_requests
from ctrlmgr.engine.validation.labels import validate_labels
from ctrlmgr.engine.validation.metadata import validate_managed_fields, validate_owner_references
from ctrlmgr.errors import BadRequest
from ctrlmgr.kinds.core.pod.downward_api import ENVIRONMENT_FIELDS, validate_field_reference
from ctrlmgr.kinds.core.pod.scheduling import validate_spreading
from ctrlmgr.logging import LONGEST, configure, mask
from ctrlmgr.server.http.bounds import DEFAULT
from ctrlmgr.server.http.parser import Malformed
from tests.engine.stage import Stage, builtin_kinds
from tests.robustness.attack.growth import WORST, growth
from tests.server.http.test_parser import CHUNKED, GET, Heard

STAGE = Stage()
STAGE.namespace("n")
KINDS = builtin_kinds()
POD = next(kind for kind in KINDS if kind.name == "Pod")


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


def received(data: bytes, piece: int = 65_536) -> None:
    heard = Heard(DEFAULT)
    try:
        heard.feed(data, piece)
    except Malformed:
        return


Case = tuple[Callable[[int], Any], Callable[[Any], object], int]

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
    "constraints of spreading": (spread, lambda given: validate_spreading(given, ROOT, merged=True), 500),
    "keys of one constraint": (spread_keys, lambda given: validate_spreading(given, ROOT, merged=True), 500),
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
    "requests in one go": (lambda count: GET * count, received, 500),
}


def refused(errors: list[Any]) -> None:
    str(refuse("Pod", "", "p", errors))


@pytest.mark.parametrize("name", WORK)
def test_work_grows_no_faster_than_its_input(name: str) -> None:
    make, work, size = WORK[name]
    assert growth(make, work, size) <= WORST


def test_growth_is_noticed_where_there_is_some() -> None:
    def quadratic(given: list[int]) -> int:
        return sum(1 for one in given for other in given if one == other)

    assert growth(lambda size: list(range(size)), quadratic, 200) > WORST
    assert growth(lambda size: list(range(size)), sum, 50_000) <= WORST


def test_a_refusal_tells_of_so_many_errors_and_of_how_many_more() -> None:
    error = refuse("Pod", "", "p", [invalid(f"a{at}", "x", "bad") for at in range(100_000)])
    assert error.details is not None
    assert len(error.details.causes) == MOST_ERRORS
    assert str(error).endswith(f", and {100_000 - MOST_ERRORS} more]")
    assert len(str(error)) < 64 * 1024


def test_a_refusal_is_not_much_larger_than_its_bounds() -> None:
    owned = validate_owner_references(owners(1600), ROOT)
    error = refuse("Pod", "", "p", owned)
    assert error.details is not None
    assert sum(len(cause.message) for cause in error.details.causes) < 200_000
    assert len(str(error)) < 200_000


@pytest.mark.parametrize("value", ["x" * 1_000_000, ["é" * 10] * 100_000])
def test_an_error_shows_no_more_of_a_value_than_helps(value: Any) -> None:
    shown = invalid("a", value, "bad").body
    assert len(shown) < 8 * LONGEST_VALUE
    assert shown.endswith(" more: bad")


@pytest.mark.parametrize("parse", [LabelSelector.parse, FieldSelector.parse])
def test_a_selector_has_a_longest_length(parse: Callable[[str], object]) -> None:
    with pytest.raises(BadRequest, match=f"at most {LONGEST_SELECTOR}"):
        parse("a=b," * LONGEST_SELECTOR)


def test_a_logged_value_is_cut() -> None:
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
def test_a_token_that_cannot_be_read_is_none(token: str) -> None:
    assert jwt.parse(token) is None
