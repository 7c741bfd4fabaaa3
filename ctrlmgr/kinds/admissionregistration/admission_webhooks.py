"""The defaults and the validation of webhook configurations.

Guarantees: in a stored configuration, the names of webhooks are unique. Each webhook has a URL or a Service, but not
both. Each webhook accepts a version of AdmissionReview that this server sends, and its match conditions compile. If the
stored configuration already violates a rule, an update may also violate the rule.

Source: Kubernetes' `pkg/apis/admissionregistration/{v1/defaults.go,validation/validation.go}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, required, tentatively
from ctrlmgr.api.unstructured import Unstructured, repeated
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_selector
from ctrlmgr.engine.validation.webhook_validation import validate_service, validate_url
from ctrlmgr.kinds.admissionregistration.expression_variables import CONDITIONS
from ctrlmgr.kinds.admissionregistration.match_rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATIONS,
    Raw,
    choice_errors,
    condition_errors,
    rule_errors,
)

_VERSIONS: Final = ("v1", "v1beta1")
_HARMLESS: Final = ("None", "NoneOnDryRun")
_SIDE_EFFECTS: Final = (*_HARMLESS, "Some", "Unknown")
_SELECTORS: Final = ("namespaceSelector", "objectSelector")


class _Required(NamedTuple):
    """The requirements for webhooks; if the old configuration violates a requirement, an update may also violate it."""

    conditions: bool = True
    """Whether the match conditions must compile."""
    no_side_effects: bool = True
    known_version: bool = True
    own_names: bool = True
    valid_labels: bool = True
    """Whether values in selectors must be valid label values."""


class WebhookConfigurationStrategy(Strategy):
    """The strategy of ValidatingWebhookConfigurations and MutatingWebhookConfigurations."""

    allow_unconditional_update = False
    has_generation = True
    any_finalizer = True
    compares_metadata = False

    def __init__(self, *, mutates: bool) -> None:
        """Create the strategy of one of the two kinds; `mutates` is true for MutatingWebhookConfiguration."""
        self._mutates = mutates

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of webhooks."""
        if obj.get("webhooks"):
            obj["webhooks"] = [_defaulted(hook, mutates=self._mutates) for hook in obj["webhooks"]]

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate every webhook, and validate that all webhooks have different names."""
        hooks: Sequence[Raw] = obj.get("webhooks") or ()
        before: Sequence[Raw] | None = None if ctx.old is None else ctx.old.get("webhooks") or ()
        needed = _Required() if before is None else tentatively(lambda: _required(hooks, before))
        errors: list[FieldError] = []
        again = repeated([hook.get("name") or "" for hook in hooks])
        for index, hook in enumerate(hooks):
            path, name = Path("webhooks").at(index), hook.get("name") or ""
            errors += _hook_errors(hook, path, needed, mutates=self._mutates)
            errors += _version_errors(hook.get("admissionReviewVersions") or [], path, needed)
            if needed.own_names and name and index in again:
                errors.append(duplicate(path.child("name"), name))
        return errors


def _defaulted(hook: Mapping[str, Any], *, mutates: bool) -> dict[str, Any]:
    filled = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
        **({"reinvocationPolicy": "Never"} if mutates else {}),
        **{field: value for field, value in hook.items() if value is not None},
    }
    if filled.get("rules"):
        filled["rules"] = [{**rule, "scope": "*"} if rule.get("scope") is None else rule for rule in filled["rules"]]
    client = filled.get("clientConfig") or {}
    service = client.get("service")
    if service is not None and service.get("port") is None:
        filled["clientConfig"] = {**client, "service": {**service, "port": 443}}
    return filled


def _required(hooks: Sequence[Raw], before: Sequence[Raw]) -> _Required:
    is_new = [hook.get("matchConditions") for hook in hooks] != [hook.get("matchConditions") for hook in before]
    versions = (hook.get("admissionReviewVersions") for hook in before)
    return _Required(
        conditions=is_new,
        no_side_effects=all(hook.get("sideEffects") in _HARMLESS for hook in before),
        known_version=all(not each or _is_spoken(each) for each in versions),
        own_names=not repeated([hook.get("name") or "" for hook in before]),
        valid_labels=not any(
            validate_label_selector(hook.get(field), Path(field)) for hook in before for field in _SELECTORS
        ),
    )


def _is_spoken(versions: Sequence[str]) -> bool:
    return any(version in _VERSIONS for version in versions)


def _hook_errors(hook: Raw, path: Path, needed: _Required, *, mutates: bool) -> Iterator[FieldError]:
    yield from _name_errors(hook.get("name") or "", path.child("name"))
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from rule_errors(rule, path.child("rules").at(index))
    yield from choice_errors(hook, "failurePolicy", FAILURE_POLICIES, path)
    yield from choice_errors(hook, "matchPolicy", MATCH_POLICIES, path)
    effects = _HARMLESS if needed.no_side_effects else _SIDE_EFFECTS
    if hook.get("sideEffects") is None:
        yield required(path.child("sideEffects"), f"must specify one of {', '.join(effects)}")
    yield from choice_errors(hook, "sideEffects", effects, path)
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        yield invalid(path.child("timeoutSeconds"), timeout, "the timeout value must be between 1 and 30 seconds")
    for field in _SELECTORS:
        lenient = not needed.valid_labels
        yield from validate_label_selector(hook.get(field), path.child(field), invalid_values_allowed=lenient)
    if mutates:
        yield from choice_errors(hook, "reinvocationPolicy", REINVOCATIONS, path)
    yield from _client_errors(hook.get("clientConfig") or {}, path.child("clientConfig"))
    if needed.conditions:
        yield from condition_errors(hook.get("matchConditions") or (), path.child("matchConditions"), CONDITIONS)


def _name_errors(name: str, path: Path) -> Iterator[FieldError]:
    """Yield the errors of a webhook's name, which must have the form `a.b.c` (`IsFullyQualifiedName`)."""
    if not name:
        yield required(path)
    elif problems := name_formats.dns1123_subdomain(name):
        yield invalid(path, name, ",".join(problems))
    elif name.count(".") < 2:
        yield invalid(path, name, "should be a domain with at least three segments separated by dots")


def _version_errors(versions: Sequence[str], hook: Path, needed: _Required) -> Iterator[FieldError]:
    path, known = hook.child("admissionReviewVersions"), ", ".join(_VERSIONS)
    if not versions:
        yield required(path, f"must specify one of {known}")
        return
    again = repeated(versions)
    for index, version in enumerate(versions):
        if index in again:
            yield invalid(path.at(index), version, "duplicate version")
            continue
        for problem in name_formats.dns1035_label(version):
            yield invalid(path.at(index), version, problem)
    if needed.known_version and not _is_spoken(versions):
        yield invalid(path, list(versions), f"must include at least one of {known}")


def _client_errors(client: Raw, path: Path) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from validate_url(path.child("url"), url)
    elif service is not None:  # in its errors, Kubernetes swaps the names of the two fields
        name, namespace = service.get("namespace") or "", service.get("name") or ""
        yield from validate_service(path.child("service"), service, name=name, namespace=namespace)
