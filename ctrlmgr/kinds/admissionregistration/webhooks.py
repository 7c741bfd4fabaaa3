"""Webhook configurations: what is filled in, and what a configuration may say.

Guarantees: a configuration that is stored can be acted on: every hook has a name of its own, can be reached in one way,
speaks a version of AdmissionReview that is spoken here, and has conditions that can be evaluated.

Rules come from Kubernetes' `pkg/apis/admissionregistration/{v1/defaults.go,validation/validation.go}` and apiserver's
`pkg/util/webhook/validation.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured, repeated
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import names
from ctrlmgr.engine.validation.labels import validate_label_selector
from ctrlmgr.kinds.admissionregistration.expressions import CONDITIONS
from ctrlmgr.kinds.admissionregistration.rules import condition_errors

_OPERATIONS = ("*", "CREATE", "UPDATE", "DELETE", "CONNECT")
_SCOPES = ("*", "Cluster", "Namespaced")
_VERSIONS = ("v1", "v1beta1")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_FORMAT = "; desired format: https://host[/path]"


class WebhookConfigurationStrategy(Strategy):
    """admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration and MutatingWebhookConfiguration."""

    allow_unconditional_update = False
    has_generation = True
    any_finalizer = True

    def __init__(self, *, mutates: bool) -> None:
        """Say which of the two it is."""
        self._mutates = mutates

    def default(self, obj: Unstructured) -> None:
        """Fill in what hooks leave out."""
        if obj.get("webhooks"):
            obj["webhooks"] = [_defaulted(hook, mutates=self._mutates) for hook in obj["webhooks"]]

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Check every hook, and that no two have one name."""
        errors: list[FieldError] = []
        seen: set[str] = set()
        for index, hook in enumerate(obj.get("webhooks") or ()):
            path = Path("webhooks").at(index)
            errors += _validate_hook(hook, path, mutates=self._mutates)
            name = hook.get("name") or ""
            if name and name in seen:
                errors.append(duplicate(path.child("name"), name))
            seen.add(name)
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


def _validate_hook(hook: Mapping[str, Any], path: Path, *, mutates: bool) -> list[FieldError]:
    errors = _validate_name(hook.get("name") or "", path.child("name"))
    errors += _validate_versions(hook.get("admissionReviewVersions") or [], path.child("admissionReviewVersions"))
    for index, rule in enumerate(hook.get("rules") or ()):
        errors += _validate_rule(rule, path.child("rules").at(index))
    errors += _choice(hook, "failurePolicy", ("Fail", "Ignore"), path)
    errors += _choice(hook, "matchPolicy", ("Equivalent", "Exact"), path)
    if hook.get("sideEffects") is None:
        errors.append(required(path.child("sideEffects"), f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    errors += _choice(hook, "sideEffects", _SIDE_EFFECTS, path)
    if mutates:
        errors += _choice(hook, "reinvocationPolicy", ("IfNeeded", "Never"), path)
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(path.child("timeoutSeconds"), timeout, detail))
    for field in ("namespaceSelector", "objectSelector"):
        errors += validate_label_selector(hook.get(field) or {}, path.child(field))
    errors += _validate_client(hook.get("clientConfig") or {}, path.child("clientConfig"))
    return [*errors, *condition_errors(hook.get("matchConditions") or (), path.child("matchConditions"), CONDITIONS)]


def _choice(hook: Mapping[str, Any], field: str, values: Sequence[str], path: Path) -> list[FieldError]:
    value = hook.get(field)
    return [] if value is None or value in values else [not_supported(path.child(field), value, sorted(values))]


def _validate_name(name: str, path: Path) -> list[FieldError]:
    if not name:
        return [required(path)]
    if problems := names.dns1123_subdomain(name):
        return [invalid(path, name, ",".join(problems))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _validate_versions(versions: Sequence[str], path: Path) -> list[FieldError]:
    known = ", ".join(_VERSIONS)
    if not versions:
        return [required(path, f"must specify one of {known}")]
    errors: list[FieldError] = []
    again = repeated(versions)
    for index, version in enumerate(versions):
        if index in again:
            errors.append(invalid(path.at(index), version, "duplicate version"))
            continue
        errors += [invalid(path.at(index), version, problem) for problem in names.dns1035_label(version)]
    if not any(version in _VERSIONS for version in versions):
        errors.append(invalid(path, list(versions), f"must include at least one of {known}"))
    return errors


def _validate_rule(rule: Mapping[str, Any], path: Path) -> list[FieldError]:
    operations = rule.get("operations") or []
    errors = _validate_wildcard(operations, path.child("operations"), "operations")
    errors += [
        not_supported(path.child("operations").at(index), each, sorted(_OPERATIONS))
        for index, each in enumerate(operations)
        if each not in _OPERATIONS
    ]
    errors += _validate_wildcard(rule.get("apiGroups") or [], path.child("apiGroups"), "API groups")
    versions = rule.get("apiVersions") or []
    errors += _validate_wildcard(versions, path.child("apiVersions"), "API versions")
    errors += [required(path.child("apiVersions").at(index)) for index, each in enumerate(versions) if not each]
    errors += _validate_resources(rule.get("resources") or [], path.child("resources"))
    return errors + _choice(rule, "scope", _SCOPES, path)


def _validate_wildcard(values: Sequence[str], path: Path, what: str) -> list[FieldError]:
    if not values:
        return [required(path)]
    if len(values) > 1 and "*" in values:
        return [invalid(path, list(values), f"if '*' is present, must not specify other {what}")]
    return []


def _validate_resources(resources: Sequence[str], path: Path) -> list[FieldError]:
    """Check that no resource is named twice, by itself and by a wildcard."""
    if not resources:
        return [required(path)]
    errors: list[FieldError] = []
    every_part: set[str] = set()
    everywhere: set[str] = set()
    for index, each in enumerate(resources):
        resource, slash, part = each.partition("/")
        if not each:
            errors.append(required(path.at(index)))
        if not slash:
            continue
        for wildcard, present in ((f"{resource}/*", resource in every_part), (f"*/{part}", part in everywhere)):
            if present:
                detail = f"if '{wildcard}' is present, must not specify {each}"
                errors.append(invalid(path.at(index), each, detail))
        if part == "*":
            every_part.add(resource)
        if resource == "*":
            everywhere.add(part)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, list(resources), "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any(each and "/" not in each and each != "*" for each in resources):
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, list(resources), detail))
    return errors


def _validate_client(client: Mapping[str, Any], path: Path) -> list[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return _validate_url(url, path.child("url"))
    return _validate_service(service or {}, path.child("service"))


def _validate_url(text: str, path: Path) -> list[FieldError]:
    try:
        url = urlsplit(text)
    except ValueError as problem:
        return [required(path, f"url must be a valid URL: {problem}{_FORMAT}")]
    errors: list[FieldError] = []
    if url.scheme != "https":
        errors.append(invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORMAT}"))
    user, at, host = url.netloc.rpartition("@")
    if not host:
        errors.append(invalid(path, host, f"host must be specified{_FORMAT}"))
    if at:
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if url.fragment:
        errors.append(invalid(path, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        errors.append(invalid(path, url.query, "query parameters are not permitted in the URL"))
    return errors


def _validate_service(service: Mapping[str, Any], path: Path) -> list[FieldError]:
    confused = (("name", "namespace"), ("namespace", "name"))  # Kubernetes names the one where the other is missing
    errors = [required(path.child(shown)) for shown, field in confused if not service.get(field)]
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(invalid(path.child("port"), port, detail))
    return errors + _validate_path(service.get("path"), path.child("path"))


def _validate_path(text: str | None, path: Path) -> list[FieldError]:
    if not text or text == "/":
        return []
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    errors = [] if text.startswith("/") else [invalid(path, text, "must start with a '/'")]
    for index, segment in enumerate(text[1:].removesuffix("/").split("/")):
        if not segment:
            errors.append(invalid(path, text, f"segment[{index}] may not be empty"))
            continue
        problems = names.dns1123_subdomain(segment)
        errors += [invalid(path, text, f"segment[{index}]: {problem}") for problem in problems]
    return errors
