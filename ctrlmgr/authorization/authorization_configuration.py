"""Reads `--authorization-config`: the list of authorizers, which may include several webhooks.

Guarantees: an error in the file or in one of its expressions is reported on one line, which contains the position of
the error.

Source: apiserver `pkg/apis/apiserver/{types,v1/defaults,validation/validation}.go` (AuthorizationConfiguration of
apiserver.config.k8s.io/v1 and v1beta1), Kubernetes' `pkg/kubeapiserver/options/authorization.go`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.authentication.user_names import is_subdomain
from ctrlmgr.authorization.authorizer import Decision, Verdict
from ctrlmgr.authorization.authorizer_match_conditions import ConditionCompiler
from ctrlmgr.expressions.declarations import Functions
from ctrlmgr.expressions.environment import Expression
from ctrlmgr.golang.go_text import quote
from ctrlmgr.settings.authorization_settings import CONFIGURED_TYPES
from ctrlmgr.settings.configuration_files import Document, read_document
from ctrlmgr.settings.setting_types import parse_duration

WEBHOOK: Final = "Webhook"
_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1")
_REVIEWS: Final = ("v1", "v1beta1")
_LONGEST: Final = 30.0
"""The maximum timeout of a webhook, in seconds."""
_MOST_CONDITIONS: Final = 64


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The base class of the structs into which the configuration file is decoded."""


class _Connection(_Part, frozen=True):
    type: str = ""
    kube_config_file: str | None = None


class _Condition(_Part, frozen=True):
    expression: str = ""


class _Webhook(_Part, frozen=True):
    timeout: str = ""
    authorized_ttl: str = msgspec.field(default="5m", name="authorizedTTL")
    cache_authorized_requests: bool = True
    unauthorized_ttl: str = msgspec.field(default="30s", name="unauthorizedTTL")
    cache_unauthorized_requests: bool = True
    subject_access_review_version: str = ""
    match_condition_subject_access_review_version: str = ""
    failure_policy: str = ""
    connection_info: _Connection = _Connection()
    match_conditions: tuple[_Condition, ...] = ()


class _Authorizer(_Part, frozen=True):
    type: str = ""
    name: str = ""
    webhook: _Webhook | None = None


class _Configuration(_Part, frozen=True):
    authorizers: tuple[_Authorizer, ...] = ()


class Webhook(NamedTuple):
    """The settings of an authorization webhook, as in the configuration file."""

    config: Path
    """The path of the kubeconfig that describes how to call the webhook."""
    version: str = "v1beta1"
    """The version of `authorization.k8s.io` that requests to the webhook use."""
    authorized_ttl: float = 300.0
    unauthorized_ttl: float = 30.0
    """The TTL of a cached response of the webhook in seconds; if the TTL is 0, responses are not cached."""
    name: str = "default"
    """The name of the webhook in metrics."""
    patience: float = _LONGEST
    """The timeout of a call to the webhook, in seconds."""
    denies_unasked: bool = False
    """Whether a request is denied if a call to the webhook fails; no later authorizer can then allow the request."""
    conditions: tuple[Expression, ...] = ()
    """CEL conditions about a request; the webhook is called only if all conditions are true."""

    def unasked(self, error: str) -> Verdict:
        """Return the verdict that is used if a call to the webhook fails; the verdict contains the error."""
        return Verdict(Decision.DENY if self.denies_unasked else Decision.NO_OPINION, "", error)


class ConfiguredAuthorizer(NamedTuple):
    """One authorizer in the list of authorizers."""

    type: str
    """The type of the authorizer, one of `authorization_settings.MODES`."""
    webhook: Webhook | None = None
    """The webhook's settings; present if and only if the type is Webhook."""


def read_configuration(file: Path, functions: Functions) -> tuple[ConfiguredAuthorizer, ...]:
    """Return the configured authorizers in order.

    Raises `SettingsError` with the line and the reason if the file is invalid. Expressions in the configuration may
    call `functions`.
    """
    document = read_document(file)
    configuration = document.read("AuthorizationConfiguration", _VERSIONS, _Configuration)
    if not configuration.authorizers:
        raise document.refuse("at least one authorizer must be named", "authorizers")
    types: set[str] = set()
    names: set[str] = set()
    for index, each in enumerate(configuration.authorizers):
        _check(document, each, index, types, names)
        types.add(each.type)
        names.add(each.name)
    compiler = ConditionCompiler(functions)
    return tuple(
        _authorizer_of(document, each, index, compiler) for index, each in enumerate(configuration.authorizers)
    )


def _authorizer_of(
    document: Document, authorizer: _Authorizer, index: int, compiler: ConditionCompiler
) -> ConfiguredAuthorizer:
    if authorizer.webhook is None:
        return ConfiguredAuthorizer(authorizer.type)
    at = ("authorizers", index, "webhook")
    webhook = _webhook(document, authorizer.webhook, authorizer.name, *at)
    return ConfiguredAuthorizer(
        authorizer.type, webhook._replace(conditions=_conditions(document, authorizer.webhook, compiler, *at))
    )


def _check(
    document: Document, authorizer: _Authorizer, index: int, types: Collection[str], names: Collection[str]
) -> None:
    """Raise `SettingsError` if an authorizer is invalid; `_webhook` checks the settings of webhooks."""
    at = ("authorizers", index)
    if authorizer.type not in CONFIGURED_TYPES:
        raise document.refuse(
            f"type must be one of {', '.join(CONFIGURED_TYPES)}, not {authorizer.type!r}", *at, "type"
        )
    if authorizer.type != WEBHOOK and authorizer.type in types:
        raise document.refuse(f"only one authorizer may have the type {authorizer.type}", *at, "type")
    if not is_subdomain(authorizer.name):
        raise document.refuse(f"name must be a lower-case RFC 1123 subdomain, not {authorizer.name!r}", *at, "name")
    if authorizer.name in names:
        raise document.refuse(f"{authorizer.name} is named twice", *at, "name")
    if authorizer.type != WEBHOOK and authorizer.name != authorizer.type.lower():
        raise document.refuse(f"the type {authorizer.type} must have the name {authorizer.type.lower()}", *at, "name")
    if (authorizer.type == WEBHOOK) is (authorizer.webhook is None):
        raise document.refuse("webhook must be set only for the type Webhook, which needs it", *at, "webhook")


def _webhook(document: Document, webhook: _Webhook, name: str, *at: str | int) -> Webhook:
    """Return the settings of an authorization webhook, without its match conditions."""
    if webhook.subject_access_review_version not in _REVIEWS:
        problem = f"the version must be {' or '.join(_REVIEWS)}, not {webhook.subject_access_review_version!r}"
        raise document.refuse(problem, *at, "subjectAccessReviewVersion")
    if webhook.failure_policy not in ("NoOpinion", "Deny"):
        problem = f"failurePolicy must be NoOpinion or Deny, not {webhook.failure_policy!r}"
        raise document.refuse(problem, *at, "failurePolicy")
    patience = _seconds(document, webhook.timeout, *at, "timeout")
    if patience > _LONGEST:
        raise document.refuse("timeout must be 30s at most", *at, "timeout")
    authorized = _seconds(document, webhook.authorized_ttl, *at, "authorizedTTL")
    unauthorized = _seconds(document, webhook.unauthorized_ttl, *at, "unauthorizedTTL")
    return Webhook(
        _kubeconfig(document, webhook.connection_info, *at, "connectionInfo"),
        webhook.subject_access_review_version,
        authorized if webhook.cache_authorized_requests else 0.0,
        unauthorized if webhook.cache_unauthorized_requests else 0.0,
        name,
        patience,
        webhook.failure_policy == "Deny",
    )


def _conditions(
    document: Document, webhook: _Webhook, compiler: ConditionCompiler, *at: str | int
) -> tuple[Expression, ...]:
    _check_conditions(document, webhook, *at)
    found: dict[str, Expression] = {}
    for index, condition in enumerate(webhook.match_conditions):
        source, place = condition.expression, (*at, "matchConditions", index)
        if not source.strip():
            raise document.refuse("expression is required", *place)
        if source in found:
            raise document.refuse(f"Duplicate value: {quote(source)}", *place, "expression")
        try:
            found[source] = compiler.compile(source)
        except ValueError as error:
            raise document.refuse(str(error), *place, "expression") from error
    return tuple(found.values())


def _check_conditions(document: Document, webhook: _Webhook, *at: str | int) -> None:
    """Raise `SettingsError` if the match conditions are invalid.

    The expressions of the conditions are compiled elsewhere.
    """
    version, count = webhook.match_condition_subject_access_review_version, len(webhook.match_conditions)
    if version not in ("", "v1"):
        raise document.refuse("the version for conditions must be v1", *at, "matchConditionSubjectAccessReviewVersion")
    if count and not version:
        words = "matchConditionSubjectAccessReviewVersion is required if match conditions are specified"
        raise document.refuse(words, *at, "matchConditions")
    if count > _MOST_CONDITIONS:
        words = f"Too many: {count}: must have at most {_MOST_CONDITIONS} items"
        raise document.refuse(words, *at, "matchConditions")


def _seconds(document: Document, duration: str, *at: str | int) -> float:
    """Return a duration in seconds; raises `SettingsError` unless it is positive."""
    try:
        seconds = parse_duration(duration)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise document.refuse(f"{at[-1]} must be a duration such as 3s, not {duration!r}", *at)
    return seconds


def _kubeconfig(document: Document, connection: _Connection, *at: str | int) -> Path:
    if connection.type == "InClusterConfig":
        raise document.refuse("this server runs in no other cluster: the type must be KubeConfigFile", *at, "type")
    if connection.type != "KubeConfigFile":
        raise document.refuse(f"type must be KubeConfigFile, not {connection.type!r}", *at, "type")
    file = Path(connection.kube_config_file or "")
    if not file.is_absolute():
        problem = f"kubeConfigFile must be an absolute path, not {connection.kube_config_file!r}"
        raise document.refuse(problem, *at, "kubeConfigFile")
    if not file.is_file():
        raise document.refuse(f"there is no file {file}", *at, "kubeConfigFile")
    return file
