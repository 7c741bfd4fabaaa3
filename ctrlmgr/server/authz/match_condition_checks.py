"""Evaluates the match conditions of an authorization webhook.

Guarantees: if a request does not meet a match condition, the server does not call the webhook. If the server cannot
evaluate a match condition, the webhook's failure policy decides: the server denies the request, or asks the other
authorizers. The evaluation of a match condition never waits. The metrics have Kubernetes' names, labels and buckets,
and count each evaluation. For a request that the webhook decides, the conditions are evaluated twice.

Source: apiserver `pkg/authorization/cel/{matcher,metrics}.go`, `plugin/pkg/authorizer/webhook/webhook.go`.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Histogram

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorization_configuration import WEBHOOK, Webhook
from ctrlmgr.authorization.authorizer import NO_OPINION, Verdict
from ctrlmgr.authorization.authorizer_match_conditions import are_met
from ctrlmgr.clock import Clock
from ctrlmgr.expressions.environment import NoValue

_LABELS: Final = ("type", "name")
_errors = Counter(
    "apiserver_authorization_match_condition_evaluation_errors",
    "Requests for which a match condition of an authorization webhook failed.",
    _LABELS,
)
_exclusions = Counter(
    "apiserver_authorization_match_condition_exclusions",
    "Requests that do not meet the match conditions of an authorization webhook.",
    _LABELS,
)
_seconds = Histogram(
    "apiserver_authorization_match_condition_evaluation_seconds",
    "Seconds to evaluate the match conditions of an authorization webhook.",
    _LABELS,
    buckets=(0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
)


class Matching:
    """The match conditions of one webhook. Any thread may use an instance."""

    def __init__(self, webhook: Webhook, *, clock: Clock) -> None:
        """Create the match conditions of the authorizer `webhook`."""
        self._webhook = webhook
        self._clock = clock
        labels = (WEBHOOK, webhook.name)
        if webhook.conditions:
            self._errors, self._exclusions = _errors.labels(*labels), _exclusions.labels(*labels)
            self._seconds = _seconds.labels(*labels)

    def verdict(self, user: User, attributes: Attributes) -> Verdict | None:
        """Return a verdict without calling the webhook; None if the webhook must be called."""
        if not self._webhook.conditions:
            return None
        began = self._clock.monotonic()
        try:
            if are_met(self._webhook.conditions, user, attributes):
                return None
        except NoValue as error:
            self._errors.inc()
            return self._webhook.unasked(str(error))
        finally:
            self._seconds.observe(self._clock.monotonic() - began)
        self._exclusions.inc()
        return NO_OPINION
