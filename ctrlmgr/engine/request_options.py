"""Reads the options of requests from a query or a body and validates them, with Kubernetes' error messages.

A query maps each parameter to its decoded values, in order; most options use only the first value. Rules come from
apimachinery's `pkg/apis/meta/v1/validation`, `pkg/apis/meta/internalversion/validation` and the conversions of
`pkg/runtime/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, refuse, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.validation.object_meta import FIELD_MANAGER_LENGTH, validate_field_manager
from ctrlmgr.errors import BadRequest
from ctrlmgr.eventlog.event import Author
from ctrlmgr.golang.go_numbers import parse_int
from ctrlmgr.schema import strict_json, yaml_document
from ctrlmgr.schema.codec import JSON, YAML

Query: TypeAlias = Mapping[str, Sequence[str]]

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

EXACT: Final = "Exact"
NOT_OLDER_THAN: Final = "NotOlderThan"
_FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_PROPAGATIONS = ("Foreground", "Background", "Orphan", "nil")
_META = "meta.k8s.io"
DELETE_OPTIONS: Final = GroupVersionKind(_META, "v1", "DeleteOptions")


class Requester(NamedTuple):
    """The user of a request, and the user agent of the program."""

    user: str
    groups: tuple[str, ...] = ()
    user_agent: str = ""
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = {}
    """Further attributes of the user, which webhooks receive."""

    @property
    def author(self) -> Author:
        """The author that the log stores for writes of this requester."""
        return Author(self.user, self.user_agent)

    @property
    def manager(self) -> str:
        """The default field manager, which is the user agent up to the slash, without unprintable characters."""
        name = "".join(filter(str.isprintable, self.user_agent.partition("/")[0]))
        return name.encode()[:FIELD_MANAGER_LENGTH].decode(errors="ignore")


class Body(NamedTuple):
    """The body of a request, and its media type without parameters."""

    media_type: str
    data: bytes
    heard: Callable[[Unstructured, Callable[[], bytes]], None] | None = None
    """A function that the engine calls for the audit log, with the decoded object and a function that encodes this
    object with its defaults.
    """

    def value(self) -> Any:
        """Return the document as it was sent, including fields that decoding drops.

        The function returns None if the media type is neither JSON nor YAML. Raises `ValueError` if the document cannot
        be decoded.
        """
        if self.media_type == JSON:
            return strict_json.decode(self.data)
        return yaml_document.decode(self.data)[0] if self.media_type == YAML else None


class GetOptions(NamedTuple):
    """The resourceVersion that a read requires: "" is the newest state, "0" any state, "N" a state not older than N."""

    resource_version: str = ""


class ListOptions(NamedTuple):
    """The selectors, revision, page and watch options of a list."""

    labels: LabelSelector = LabelSelector()
    fields: FieldSelector = FieldSelector()
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_seconds: int | None = None


class WriteOptions(NamedTuple):
    """The union of CreateOptions, UpdateOptions and PatchOptions."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    """The handling of unknown fields: "Ignore", "Warn" or "Strict"."""
    force: bool = False
    given_validation: str = ""
    """`field_validation` as the client sent it; webhooks receive this value."""


class DeleteOptions(NamedTuple):
    """The meta/v1 DeleteOptions, which are not validated yet; `check_delete` validates the options."""

    dry_run: Sequence[str] = ()
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    """A precondition: the uid that the object must have."""
    resource_version: str | None = None
    """A precondition: the resourceVersion that the object must have."""


def parse_get(query: Query) -> GetOptions:
    """Read the options of a GET."""
    return GetOptions(read_text(query, "resourceVersion"))


def parse_list(query: Query, kind: Kind) -> ListOptions:
    """Read and validate the options of a list, a watch or a deletion of a collection.

    Raises `BadRequest` if an option is malformed, and `Invalid` if options are invalid.
    """
    limit = read_integer(query, "limit") or 0
    timeout = read_integer(query, "timeoutSeconds")
    options = ListOptions(
        LabelSelector.parse(read_text(query, "labelSelector")),
        FieldSelector.parse(read_text(query, "fieldSelector")),
        read_text(query, "resourceVersion"),
        read_text(query, "resourceVersionMatch"),
        limit,
        read_text(query, "continue"),
        bool(read_flag(query, "watch")),
        bool(read_flag(query, "allowWatchBookmarks")),
        read_flag(query, "sendInitialEvents"),
        timeout,
    )
    errors = _watch_errors(options) if options.watch else _list_errors(options)
    if errors:
        raise refuse("ListOptions", _META, "", errors)
    options.fields.check(kind.strategy.fields, kind.strategy.field_refusal)
    return options


def parse_create(query: Query) -> WriteOptions:
    """Read and validate the options of a POST; raises `Invalid` if an option is invalid."""
    return _write_options(query, "CreateOptions", [])


def parse_update(query: Query) -> WriteOptions:
    """Read and validate the options of a PUT; raises `Invalid` if an option is invalid."""
    return _write_options(query, "UpdateOptions", [])


def parse_patch(query: Query, media_type: str) -> WriteOptions:
    """Read and validate the options of a PATCH of the given media type; raises `Invalid` if an option is invalid."""
    errors: list[FieldError] = []
    if media_type == APPLY_PATCH:
        if not read_text(query, "fieldManager"):
            errors.append(required("fieldManager", "is required for apply patch"))
    elif "force" in query:
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    return _write_options(query, "PatchOptions", errors)


def parse_delete(query: Query) -> DeleteOptions:
    """Read the options of a DELETE without a body; raises `BadRequest` if a number is malformed."""
    return DeleteOptions(
        query.get("dryRun", ()),
        read_integer(query, "gracePeriodSeconds"),
        read_text(query, "propagationPolicy") or None,
        read_flag(query, "orphanDependents"),
    )


def delete_options(fields: Unstructured) -> DeleteOptions:
    """Read the options of a DELETE from its decoded body, which replaces all options of the query."""
    preconditions = fields.get("preconditions") or {}
    return DeleteOptions(
        fields.get("dryRun") or (),
        fields.get("gracePeriodSeconds"),
        fields.get("propagationPolicy"),
        fields.get("orphanDependents"),
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
    )


def check_delete(options: DeleteOptions) -> None:
    """Raise `Invalid` if options contradict each other or have unknown values."""
    errors: list[FieldError] = []
    policy = options.propagation_policy
    if policy is not None:
        if options.orphan_dependents is not None:
            detail = "orphanDependents and deletionPropagation cannot be both set"
            errors.append(invalid("propagationPolicy", policy, detail))
        if policy not in _PROPAGATIONS[:3]:
            errors.append(not_supported("propagationPolicy", policy, _PROPAGATIONS))
    errors += _dry_run_errors(options.dry_run)
    if errors:
        raise refuse("DeleteOptions", _META, "", errors)


def _write_options(query: Query, kind: str, errors: list[FieldError]) -> WriteOptions:
    manager, validation = read_text(query, "fieldManager"), read_text(query, "fieldValidation")
    dry_run = query.get("dryRun", ())
    if manager:
        errors += validate_field_manager(manager, Path("fieldManager"))
    errors += _dry_run_errors(dry_run)
    if validation not in _FIELD_VALIDATIONS:
        errors.append(not_supported("fieldValidation", validation, _FIELD_VALIDATIONS))
    if errors:
        raise refuse(kind, _META, "", errors)
    return WriteOptions(bool(dry_run), manager, validation or "Warn", bool(read_flag(query, "force")), validation)


def _dry_run_errors(dry_run: Sequence[str]) -> list[FieldError]:
    if all(each == "All" for each in dry_run):
        return []
    return [not_supported("dryRun", list(dry_run), ["All"])]


def _list_errors(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    field, match, version = "resourceVersionMatch", options.resource_version_match, options.resource_version
    if match:
        if not version:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_token:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER_THAN):
            errors.append(not_supported(field, match, (EXACT, NOT_OLDER_THAN, "")))
        if match == EXACT and version == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(forbidden(field, detail))
    if options.send_initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    field, match, initial = "resourceVersionMatch", options.resource_version_match, options.send_initial_events
    if initial is not None and match != NOT_OLDER_THAN:
        detail = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER_THAN}"
        errors.append(forbidden(field, detail))
    if match:
        if initial is None:
            detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(forbidden(field, detail))
        if match != NOT_OLDER_THAN:
            errors.append(not_supported(field, match, (NOT_OLDER_THAN,)))
        if options.continue_token:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    return errors


def read_text(query: Query, name: str) -> str:
    """Return the first value of a query parameter; empty if the parameter is missing."""
    values = query.get(name)
    return values[0] if values else ""


def read_flag(query: Query, name: str) -> bool | None:
    """Return a boolean query parameter; `false` and `0` are false, and any other value is true.

    The result is None if the parameter is missing.
    """
    values = query.get(name)
    return values[0].lower() not in ("false", "0") if values else None


def read_integer(query: Query, name: str) -> int | None:
    """Return an integer parameter of a query; None if it is missing; raises `BadRequest` if it is malformed."""
    values = query.get(name)
    if not values:
        return None
    try:
        return parse_int(values[0])
    except ValueError as problem:
        raise BadRequest(str(problem)) from problem
