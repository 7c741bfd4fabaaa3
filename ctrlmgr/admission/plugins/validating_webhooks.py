"""ValidatingAdmissionWebhook: calls webhooks that validate a write, all at the same time.

Guarantees: every matching webhook is called, regardless of the results of the other webhooks. If several webhooks
refuse the write, the response contains the refusal of the first of them in Kubernetes' calling order. The server
handles other requests while it waits for webhooks.

Rules come from apiserver's `pkg/admission/plugin/webhook/validating/dispatcher.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from ctrlmgr.admission.admission_plugin import Decision, Plugin, Registration
from ctrlmgr.admission.webhooks.credentials import NO_CREDENTIALS, HookCredentials
from ctrlmgr.admission.webhooks.hooks import VALIDATING, Hook, Hooks
from ctrlmgr.admission.webhooks.webhook_dispatcher import NOT_CALLED, CallFailed, PreparedCall, answer, ask, count
from ctrlmgr.admission.webhooks.webhook_match_conditions import meets_match_conditions
from ctrlmgr.admission.webhooks.webhook_selection import Invocation, invocation_of, is_exempt
from ctrlmgr.api.resource import Resource
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.calls.call import CallOut, Reply
from ctrlmgr.engine.conversion import converting
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.errors import ApiError
from ctrlmgr.tracing import latencies


class ValidatingAdmissionWebhook(Plugin):
    """Calls the webhooks of ValidatingWebhookConfigurations."""

    name: ClassVar[str] = "ValidatingAdmissionWebhook"
    activated_by = Registration(VALIDATING)

    def __init__(self, kinds: Kinds, authorizer: Authorizer, credentials: HookCredentials = NO_CREDENTIALS) -> None:
        """Create the plugin; it converts objects between the versions of `kinds`, and sends `credentials` to webhooks.

        The match conditions of webhooks query `authorizer`.
        """
        self._authorizer = authorizer
        self._credentials = credentials
        self._kinds = kinds
        self._hooks = Hooks(VALIDATING)

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: all writes.

        Webhook configurations may be created at any time, so the plugin handles writes even if no configuration exists.
        """
        return True

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether the webhook plugin needs the object.

        The plugin does not need objects of the exempt resources, because no webhooks are called for these resources.
        """
        return not is_exempt(attributes)

    def validate(self, attributes: Attributes) -> Decision:
        """Call the webhooks whose rules and conditions match the write."""
        hooks = self._hooks.found(attributes.view)
        if not hooks or is_exempt(attributes):
            return None
        matching = (invocation_of(hook, attributes, self._kinds) for hook in hooks)
        invocations = [each for each in matching if each is not None]
        return self._ask(attributes, invocations) if invocations else None

    def _ask(self, attributes: Attributes, invocations: Sequence[Invocation]) -> Operation[None]:
        refusals: list[ApiError] = []
        askings: list[tuple[int, PreparedCall]] = []
        for index, invocation in enumerate((yield from self._met(attributes, invocations))):
            try:
                question = partial(ask, attributes, invocation, self._kinds, self._credentials)
                asking = yield from converting(question, attributes.call_inputs)
                if asking.endpoint.is_simulated:
                    attributes.annotations[f"{NOT_CALLED}/round_0_index_{index}"] = asking.hook.name
                else:
                    askings.append((index, asking))
            except (ApiError, CallFailed) as error:
                refusals += _refusal(attributes, index, invocation.hook, error, 0.0)
        attributes.asked.update(asking.hook.uid for _, asking in askings)
        replies = yield from _replies([asking for _, asking in askings])
        for (index, asking), reply in zip(askings, replies, strict=True):
            try:
                answer(asking, reply, attributes, mutates=False)
                count(asking.hook, "validating", attributes, reply.seconds, None)
            except (ApiError, CallFailed) as error:
                refusals += _refusal(attributes, index, asking.hook, error, reply.seconds)
        if refusals:
            raise refusals[0]

    def _met(self, attributes: Attributes, invocations: Sequence[Invocation]) -> Operation[list[Invocation]]:
        """Return the webhook invocations whose match conditions are met."""
        met: list[Invocation] = []
        for each in invocations:
            met += (
                [each] if (yield from meets_match_conditions(each, attributes, self._kinds, self._authorizer)) else []
            )
        return met


def _replies(askings: Sequence[PreparedCall]) -> Operation[list[Reply]]:
    """Call the webhooks whose endpoints are known; return the response of each webhook."""
    reachable = [asking.call for asking in askings if not asking.endpoint.problem]
    replies: list[Reply] = list((yield CallOut(reachable))) if reachable else []
    for reply in replies:
        latencies.add(latencies.VALIDATING_WEBHOOK, reply.seconds)
    answers = iter(replies)
    return [Reply(problem=asking.endpoint.problem) if asking.endpoint.problem else next(answers) for asking in askings]


def _refusal(
    attributes: Attributes, index: int, hook: Hook, error: ApiError | CallFailed, seconds: float
) -> list[ApiError]:
    """Return the error of a webhook that denied the write or could not be called.

    The result is empty if the call failed and the webhook's failurePolicy is Ignore.
    """
    count(hook, "validating", attributes, seconds, error)
    if isinstance(error, ApiError):
        return [error]
    if hook.fails_open:
        attributes.annotations[f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}"] = hook.name
        return []
    return [error.error()]
