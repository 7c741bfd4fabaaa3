"""MutatingAdmissionWebhook: calls webhooks, one after the other, that may change a write.

Guarantees: each webhook sees the object with the changes of the webhooks before it. If a webhook changes the object,
the plugins before MutatingAdmissionWebhook are called again, and webhooks with the reinvocation policy IfNeeded are
called a second time. No webhook is called more than twice. The second round of mutating admission calls only webhooks
that the first round called.

Rules come from apiserver's `pkg/admission/plugin/webhook/mutating/{dispatcher,reinvocationcontext}.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import msgspec

from ctrlmgr.admission.admission_plugin import Decision, Plugin, Registration
from ctrlmgr.admission.reinvocation import Rounds
from ctrlmgr.admission.storage_conversion import stored
from ctrlmgr.admission.webhooks.credentials import NO_CREDENTIALS, HookCredentials
from ctrlmgr.admission.webhooks.hooks import MUTATING, Hook, Hooks
from ctrlmgr.admission.webhooks.review import shown
from ctrlmgr.admission.webhooks.webhook_dispatcher import (
    NOT_CALLED,
    CallFailed,
    PreparedCall,
    answer,
    ask,
    compact,
    count,
)
from ctrlmgr.admission.webhooks.webhook_match_conditions import meets_match_conditions
from ctrlmgr.admission.webhooks.webhook_selection import Invocation, invocation_of, is_exempt
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.engine.admission_attributes import Attributes, Changer, Verb
from ctrlmgr.engine.calls.call import Calling, CallOut, Reply
from ctrlmgr.engine.conversion import converting
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.patch import json_patch
from ctrlmgr.engine.patch.json_patch import problem_of
from ctrlmgr.errors import ApiError, BadRequest, InternalError
from ctrlmgr.tracing import latencies


class MutatingAdmissionWebhook(Plugin):
    """Calls the webhooks of MutatingWebhookConfigurations."""

    name: ClassVar[str] = "MutatingAdmissionWebhook"
    activated_by = Registration(MUTATING)

    def __init__(self, kinds: Kinds, authorizer: Authorizer, credentials: HookCredentials = NO_CREDENTIALS) -> None:
        """Create the plugin; it converts objects between the versions of `kinds`, and sends `credentials` to webhooks.

        The match conditions of webhooks query `authorizer`.
        """
        self._authorizer = authorizer
        self._credentials = credentials
        self._kinds = kinds
        self._hooks = Hooks(MUTATING)

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

    def admit(self, attributes: Attributes) -> Decision:
        """Call the webhooks whose rules and conditions match the write."""
        hooks = self._hooks.found(attributes.view)
        if not hooks or is_exempt(attributes):
            return None
        return self._ask_all(attributes, hooks)

    def _ask_all(self, attributes: Attributes, hooks: Sequence[Hook]) -> Operation[None]:
        rounds: Rounds = attributes.memory.setdefault(self.name, Rounds())
        if attributes.is_reinvocation and rounds.output != self._shown(attributes):
            rounds.require()
        for index, hook in enumerate(hooks):
            invocation = invocation_of(hook, attributes, self._kinds)
            if invocation is None or (attributes.is_reinvocation and hook.uid not in rounds.again):
                continue
            if not (yield from meets_match_conditions(invocation, attributes, self._kinds, self._authorizer)):
                continue
            if (yield from self._ask(attributes, invocation, index)):
                rounds.require()
                attributes.should_reinvoke = True
                attributes.changed_by.append(Changer(f"webhook {hook.name} of {hook.configuration}", hook.revision))
            if hook.reinvoked:
                rounds.asked.add(hook.uid)
        rounds.output = self._shown(attributes)

    def _shown(self, attributes: Attributes) -> Unstructured | None:
        return shown(attributes, attributes.object, attributes.kind, self._kinds)

    def _ask(self, attributes: Attributes, invocation: Invocation, index: int) -> Operation[bool]:
        """Call one webhook; return whether it changed the object."""
        hook, note = invocation.hook, _WebhookAnnotations(attributes, index)
        seconds, changed = 0.0, False
        try:
            asking = yield from converting(
                lambda: ask(attributes, invocation, self._kinds, self._credentials), attributes.call_inputs
            )
            if asking.endpoint.is_simulated:
                note.add(NOT_CALLED, hook.name)
                return False
            if asking.endpoint.problem:
                reply = Reply(problem=asking.endpoint.problem)
            else:
                attributes.asked.add(hook.uid)
                (reply,) = yield CallOut([asking.call])
                latencies.add(latencies.MUTATING_WEBHOOK, reply.seconds)
            seconds = reply.seconds
            changed = yield from self._apply(asking, reply, attributes, note)
            count(hook, "admit", attributes, seconds, None)
        except CallFailed as failure:
            count(hook, "admit", attributes, seconds, failure)
            if not hook.fails_open:
                raise failure.error() from failure
            note.add("failed-open.mutation.webhook.admission.k8s.io", hook.name)
        except ApiError as error:
            count(hook, "admit", attributes, seconds, error)
            raise
        finally:
            where = {"configuration": hook.configuration, "webhook": hook.name}
            note.add("mutation.webhook.admission.k8s.io", compact({**where, "mutated": changed}))
        return changed

    def _apply(
        self, asking: PreparedCall, reply: Reply, attributes: Attributes, note: _WebhookAnnotations
    ) -> Operation[bool]:
        """Apply the patch in a webhook's response; return whether it changed the object."""
        verdict, hook = answer(asking, reply, attributes, mutates=True), asking.hook
        if not verdict.patch:
            return False
        try:
            operations = msgspec.json.decode(verdict.patch)
        except msgspec.DecodeError as problem:
            raise CallFailed(hook, f"received undecodable patch in webhook response: {problem}") from problem
        if operations is None or operations == []:
            return False
        if attributes.object is None:
            detail = "attempted to modify the object, which is not supported for this operation"
            raise _final(f'admission webhook "{hook.name}" {detail}')
        if verdict.patch_type != "JSONPatch":
            raise CallFailed(hook, f'unsupported patch type "{verdict.patch_type}"')
        before = yield from self._seen(attributes, asking.invocation)
        assert before is not None  # mutating webhooks handle only writes with an object
        try:
            patched = json_patch(before, operations)
        except BadRequest as problem:
            raise CallFailed(hook, f"received undecodable patch in webhook response: {problem}") from problem
        except ApiError as problem:
            raise _final(problem_of(problem)) from problem
        try:
            attributes.object = yield from stored(attributes, asking.invocation.kind, patched, self._kinds)
        except ApiError as problem:
            raise _final(str(problem)) from problem
        patch = {"patch": operations, "patchType": "JSONPatch"}
        where = {"configuration": hook.configuration, "webhook": hook.name}
        note.add("patch.webhook.admission.k8s.io", compact({**where, **patch}))
        return before != (yield from self._seen(attributes, asking.invocation))

    def _seen(self, attributes: Attributes, invocation: Invocation) -> Calling[Unstructured | None]:
        """Return the object in the version that the webhook expects."""
        seen = partial(shown, attributes, attributes.object, invocation.kind, self._kinds)
        return (yield from converting(seen, attributes.call_inputs))


class _WebhookAnnotations:
    """The audit annotations about one call of a webhook in one round of mutating admission."""

    def __init__(self, attributes: Attributes, index: int) -> None:
        self._annotations: dict[str, Any] = attributes.annotations
        self._place = f"round_{int(attributes.is_reinvocation)}_index_{index}"

    def add(self, prefix: str, value: str) -> None:
        self._annotations[f"{prefix}/{self._place}"] = value


def _final(problem: str) -> InternalError:
    error = InternalError(f"Internal error occurred: {problem}")
    error.is_final = True
    return error
