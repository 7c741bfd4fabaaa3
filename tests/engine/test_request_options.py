from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.engine import request_options
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.request_options import APPLY_PATCH, MERGE_PATCH, DeleteOptions, Requester
from ctrlmgr.errors import ApiError, BadRequest, Invalid
from tests.engine.stage import builtin_kinds

Query = dict[str, str | list[str]]


def query(values: Query) -> dict[str, list[str]]:
    return {name: value if isinstance(value, list) else [value] for name, value in values.items()}


def kind(plural: str = "configmaps") -> Kind:
    found = builtin_kinds().find("", "v1", plural)
    assert found is not None
    return found


def listed(values: Query) -> request_options.ListOptions:
    return request_options.parse_list(query(values), kind())


def test_omitted_options_have_kubernetes_defaults() -> None:
    found = listed({})
    assert (found.labels.is_empty, found.fields.is_empty) == (True, True)
    assert found[2:] == ("", "", 0, "", False, False, None, None)
    assert request_options.parse_create({}) == (False, "", "Warn", False, "")
    assert request_options.parse_get({}) == ("",)
    assert request_options.parse_delete({}) == DeleteOptions()


def test_options_are_read_from_queries() -> None:
    found = listed({"limit": "5", "timeoutSeconds": "9", "watch": "1", "allowWatchBookmarks": "true"})
    assert (found.limit, found.timeout_seconds, found.watch, found.allow_watch_bookmarks) == (5, 9, True, True)
    wanted = {"dryRun": "All", "fieldManager": "me", "fieldValidation": "Strict"}
    assert request_options.parse_update(query({**wanted})) == (True, "me", "Strict", False, "Strict")
    assert request_options.parse_patch(query({**wanted, "force": "true"}), APPLY_PATCH) == (
        True,
        "me",
        "Strict",
        True,
        "Strict",
    )
    deletion: Query = {"gracePeriodSeconds": "7", "propagationPolicy": "Orphan", "dryRun": ["All"]}
    assert request_options.parse_delete(query(deletion)) == DeleteOptions(["All"], 7, "Orphan")
    assert request_options.parse_delete(query({"orphanDependents": "false"})).orphan_dependents is False


def test_options_are_read_from_bodies() -> None:
    body: dict[str, Any] = {
        "gracePeriodSeconds": 0,
        "orphanDependents": True,
        "dryRun": ["All"],
        "preconditions": {"uid": "u", "resourceVersion": "3"},
    }
    assert request_options.delete_options(body) == DeleteOptions(["All"], 0, None, True, "u", "3")
    assert request_options.delete_options({}) == DeleteOptions()


@pytest.mark.parametrize(("text", "flag"), [("", True), ("true", True), ("x", True), ("False", False), ("0", False)])
def test_a_flag_is_true_unless_it_is_false_or_0(text: str, flag: bool) -> None:
    assert listed({"watch": text}).watch is flag


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"limit": "many"}, 'strconv.ParseInt: parsing "many": invalid syntax'),
        ({"limit": ""}, 'strconv.ParseInt: parsing "": invalid syntax'),
        ({"timeoutSeconds": "9" * 20}, f'strconv.ParseInt: parsing "{"9" * 20}": value out of range'),
        ({"labelSelector": "a=b=c"}, "found '=', expected: ',' or 'end of string'"),
        ({"fieldSelector": "x"}, "invalid selector: 'x'; can't understand 'x'"),
        (
            {"fieldSelector": "spec.nope=1"},
            '"spec.nope" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_unreadable_options_are_a_bad_request(values: Query, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        listed(values)
    assert str(refused.value) == message


LIST = "ListOptions.meta.k8s.io"
MATCH = "resourceVersionMatch"
NEEDS_VERSION = f"{MATCH}: Forbidden: {MATCH} is forbidden unless resourceVersion is provided"
NO_CONTINUE = f"{MATCH}: Forbidden: {MATCH} is forbidden when continue is provided"
DRY_RUN = 'dryRun: Unsupported value: ["Nope"]: supported values: "All"'
BOTH = "orphanDependents and deletionPropagation cannot be both set"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({MATCH: "Exact"}, NEEDS_VERSION),
        ({MATCH: "NotOlderThan", "resourceVersion": "1", "continue": "x"}, NO_CONTINUE),
        (
            {MATCH: "Wrong", "resourceVersion": "1"},
            f'{MATCH}: Unsupported value: "Wrong": supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            {MATCH: "Exact", "resourceVersion": "0"},
            f'{MATCH}: Forbidden: {MATCH} "exact" is forbidden for resourceVersion "0"',
        ),
        ({"sendInitialEvents": "1"}, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
        (
            {"watch": "1", "sendInitialEvents": "1"},
            f"{MATCH}: Forbidden: sendInitialEvents requires setting {MATCH} to NotOlderThan",
        ),
        (
            {"watch": "1", MATCH: "NotOlderThan", "resourceVersion": "1"},
            f"{MATCH}: Forbidden: {MATCH} is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            {"watch": "1", MATCH: "NotOlderThan", "sendInitialEvents": "0", "continue": "x"},
            NO_CONTINUE,
        ),
    ],
)
def test_contradictory_list_options_are_refused(values: Query, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        listed(values)
    assert str(refused.value) == f'{LIST} "" is invalid: {message}'
    details = refused.value.details
    assert details is not None
    assert (details.kind, details.group) == ("ListOptions", "meta.k8s.io")


def created(values: Query) -> object:
    return request_options.parse_create(query(values))


def updated(values: Query) -> object:
    return request_options.parse_update(query(values))


def applied(values: Query) -> object:
    return request_options.parse_patch(query(values), APPLY_PATCH)


def merged(values: Query) -> object:
    return request_options.parse_patch(query(values), MERGE_PATCH)


def deleted(values: Query) -> object:
    request_options.check_delete(request_options.parse_delete(query(values)))
    return None


@pytest.mark.parametrize(
    ("parse", "values", "message"),
    [
        (created, {"dryRun": "Nope"}, f'CreateOptions.meta.k8s.io "" is invalid: {DRY_RUN}'),
        (deleted, {"dryRun": "Nope"}, f'DeleteOptions.meta.k8s.io "" is invalid: {DRY_RUN}'),
        (
            updated,
            {"fieldValidation": "Wrong"},
            'UpdateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Wrong": '
            'supported values: "", "Ignore", "Strict", "Warn"',
        ),
        (
            applied,
            {},
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        ),
        (
            merged,
            {"force": "true"},
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
        ),
        (
            merged,
            {"fieldManager": "x" * 129},
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
        ),
        (
            deleted,
            {"propagationPolicy": "Wrong"},
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Wrong": '
            'supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
        (
            deleted,
            {"propagationPolicy": "Background", "orphanDependents": "1"},
            f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Background": {BOTH}',
        ),
    ],
)
def test_contradictory_write_options_are_refused(parse: Any, values: Query, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse(values)
    assert (refused.value.code, str(refused.value)) == (422, message)


@pytest.mark.parametrize(
    ("agent", "manager"),
    [
        ("kubectl/v1.36.2 (linux)", "kubectl"),
        ("", ""),
        ("a\tb\x00c/1", "abc"),
        ("x" * 200, "x" * 128),
        ("x" * 127 + "é", "x" * 127),
    ],
)
def test_the_default_field_manager_is_the_user_agent(agent: str, manager: str) -> None:
    assert Requester("alice", user_agent=agent).manager == manager
