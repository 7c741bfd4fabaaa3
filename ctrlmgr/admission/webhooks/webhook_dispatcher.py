"""Calls a webhook: builds the call from an invocation, and turns the response into a verdict, a refusal or a failure.

Guarantees: a denial has the webhook's own message. If a webhook cannot be called or its response is invalid, the write
fails with a 500 whose message says why, unless the failure policy is Ignore. Every call is counted under
kube-apiserver's metric names. A webhook whose Service has ready endpoints only on simulated nodes is not called: the
write continues unchanged, and an audit annotation records that the webhook was skipped.

Rules come from apiserver's `pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go`, `.../errors` and
client-go's `rest/request.go`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.admission.webhooks.credentials import NO_CREDENTIALS, HookCredentials
from ctrlmgr.admission.webhooks.hooks import Hook
from ctrlmgr.admission.webhooks.review import (
    Question,
    UnusableAnswer,
    Verdict,
    question,
    read_verdict,
    version_for,
)
from ctrlmgr.admission.webhooks.webhook_selection import Invocation
from ctrlmgr.engine.admission_attributes import Attributes
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.engine.calls.endpoint import Endpoint, endpoint_of
from ctrlmgr.engine.calls.replies import is_success, unexpected
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.validation.name_formats import qualified_name
from ctrlmgr.errors import (
    BadRequest,
    DeniedByWebhook,
    InternalError,
    SettingsError,
    StatusCause,
    StatusDetails,
)
from ctrlmgr.metrics import WEBHOOK_FAIL_OPEN, WEBHOOK_REJECTIONS, WEBHOOK_REQUESTS, WEBHOOK_SECONDS

_HIGHEST_CODE: Final = 600
NOT_CALLED: Final = "not-called.webhook.simulate.ctrlmgr.io"
"""The prefix of audit annotations about webhooks that run only on simulated nodes."""


class CallFailed(Exception):
    """Raised if a webhook cannot be called, or its response is invalid; `code` is the status code for metrics."""

    def __init__(self, hook: Hook, reason: str, code: int = 503) -> None:
        """Create the error with a description of the failure."""
        super().__init__(f'failed calling webhook "{hook.name}": {reason}')
        self.code = code

    def error(self) -> InternalError:
        """Return the 500 error with which the write fails."""
        error = InternalError(
            f"Internal error occurred: {self}", details=StatusDetails(causes=(StatusCause(message=str(self)),))
        )
        error.is_final = True
        return error


class PreparedCall(NamedTuple):
    """A call of a webhook that is ready to be sent."""

    invocation: Invocation
    question: Question
    endpoint: Endpoint
    call: Call

    @property
    def hook(self) -> Hook:
        """The webhook that the dispatcher calls."""
        return self.invocation.hook


def ask(
    attributes: Attributes, invocation: Invocation, kinds: Kinds, credentials: HookCredentials = NO_CREDENTIALS
) -> PreparedCall:
    """Return the call of a webhook for an invocation.

    Raises `BadRequest` for a dry run if the webhook has side effects. Raises `CallFailed` if the webhook cannot be
    called.
    """
    hook = invocation.hook
    if attributes.dry_run and hook.has_side_effects:
        raise BadRequest(f'admission webhook "{hook.name}" does not support dry run')
    version = version_for(invocation)
    if version is None:
        known = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise CallFailed(hook, f"could not create admission objects: {known}", 400)
    review = question(attributes, invocation, kinds, new_uid(attributes.random), version)
    endpoint = endpoint_of(hook.client, attributes.view, attributes.random)
    url = f"{endpoint.url}?timeout={hook.timeout}s"
    try:
        shown = credentials.of(endpoint.url)
    except SettingsError as problem:  # for example, a token file no longer exists
        raise CallFailed(hook, f"could not get REST client: {problem}", 500) from problem
    return PreparedCall(
        invocation,
        review,
        endpoint,
        Call(url, review.body, hook.timeout, endpoint.ca_bundle, endpoint.address, shown),
    )


def answer(asking: PreparedCall, reply: Reply, attributes: Attributes, *, mutates: bool) -> Verdict:
    """Return a webhook's verdict, and add its warnings and annotations to the write.

    Raises `CallFailed` if the response is invalid, and `DeniedByWebhook` if the webhook denies the write.
    """
    verdict = _verdict(asking, reply, mutates=mutates)
    hook = asking.hook
    for key, value in verdict.annotations.items():
        if not qualified_name(f"{hook.name}/{key}"):
            attributes.annotations[f"{hook.name}/{key}"] = value
    attributes.warnings += verdict.warnings
    if not verdict.allowed:
        raise _denied(hook.name, verdict.result or {})
    return verdict


def _verdict(asking: PreparedCall, reply: Reply, *, mutates: bool) -> Verdict:
    hook = asking.hook
    if reply.problem:
        raise CallFailed(hook, f'failed to call webhook: Post "{asking.call.url}": {reply.problem}')
    if not is_success(reply):
        raise CallFailed(hook, f"failed to call webhook: {unexpected(reply)}", reply.code)
    try:
        return read_verdict(asking.question, reply.body, mutates=mutates)
    except UnusableAnswer as problem:
        raise CallFailed(hook, f"received invalid webhook response: {problem}") from problem


def _denied(name: str, result: Mapping[str, Any]) -> DeniedByWebhook:
    by = f'admission webhook "{name}" denied the request'
    message = result.get("message") or result.get("reason")
    code = result.get("code") or 0
    return DeniedByWebhook(
        f"{by}: {message}" if message else f"{by} without explanation",
        max(code, 400),
        result.get("reason") or "",
        _details(result["details"]) if result.get("details") else None,
    )


def _details(fields: Mapping[str, Any]) -> StatusDetails:
    causes = tuple(
        StatusCause(each.get("reason") or "", each.get("message") or "", each.get("field") or "")
        for each in fields.get("causes") or ()
    )
    return StatusDetails(
        fields.get("name") or "",
        fields.get("group") or "",
        fields.get("kind") or "",
        fields.get("uid") or "",
        causes,
        fields.get("retryAfterSeconds") or 0,
    )


def count(hook: Hook, type_: str, attributes: Attributes, seconds: float, error: Exception | None) -> None:
    """Count one call of a webhook and its outcome; the type is `admit` or `validating`."""
    operation = str(attributes.operation)
    kind, code = _ending(error)
    rejected = error is not None and not (isinstance(error, CallFailed) and hook.fails_open)
    if rejected:
        WEBHOOK_REJECTIONS.labels(hook.name, type_, operation, kind, str(code)).inc()
    elif error is not None:
        WEBHOOK_FAIL_OPEN.labels(hook.name, type_).inc()
    label = str(rejected).lower()
    WEBHOOK_REQUESTS.labels(hook.name, type_, operation, str(code), label).inc()
    WEBHOOK_SECONDS.labels(hook.name, type_, operation, label).observe(seconds)


def _ending(error: Exception | None) -> tuple[str, int]:
    """Return the error type and the status code under which metrics count an error.

    Codes above `_HIGHEST_CODE` are counted as `_HIGHEST_CODE`, to limit the number of series.
    """
    match error:
        case None:
            return "", 200
        case CallFailed():
            return "calling_webhook_error", min(error.code, _HIGHEST_CODE)
        case DeniedByWebhook():
            return "no_error", min(error.code, _HIGHEST_CODE)
    return "apiserver_internal_error", 0


def compact(value: Any) -> str:
    """Encode the value of an audit annotation as JSON."""
    return json.dumps(value, separators=(",", ":"))
