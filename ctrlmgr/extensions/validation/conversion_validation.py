"""Validates `spec.conversion`: the strategy, and the webhook if there is one.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go` (`validateCustomResourceConversion`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.api.unstructured import repeated
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.webhook_validation import validate_ca_bundle, validate_service, validate_url
from ctrlmgr.extensions.structural import Raw

REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_STRATEGIES: Final = ("None", "Webhook")


def conversion_errors(
    conversion: Raw | None, path: Path, *, known_review: bool, checked_ca: bool
) -> Iterator[FieldError]:
    """Yield the validation errors of `spec.conversion`.

    If `known_review` is set, a supported version of ConversionReview is required; if `checked_ca` is set, the
    certificates must be valid.
    """
    if conversion is None:
        return
    strategy = conversion.get("strategy") or ""
    if not strategy:
        yield required(path.child("strategy"))
    elif strategy not in _STRATEGIES:
        yield not_supported(path.child("strategy"), strategy, _STRATEGIES)
    webhook: Raw = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or ()
    if strategy == "Webhook":
        yield from _client(client, path.child("webhookClientConfig"), checked_ca)
        yield from _review_versions(versions, path.child("conversionReviewVersions"), known_review)
        return
    words = "should not be set when strategy is not set to Webhook"
    if client is not None:
        yield forbidden(path.child("webhookClientConfig"), words)
    if versions:
        yield forbidden(path.child("conversionReviewVersions"), words)


def _client(client: Raw | None, path: Path, checked_ca: bool) -> Iterator[FieldError]:
    if client is None:
        yield required(path, "required when strategy is set to Webhook")
        return
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from validate_url(path.child("url"), url)
    elif service is not None:
        name, namespace = service.get("name") or "", service.get("namespace") or ""
        yield from validate_service(path.child("service"), service, name=namespace, namespace=name)
    if checked_ca and (bundle := client.get("caBundle")):
        yield from validate_ca_bundle(path.child("caBundle"), bundle)


def _review_versions(versions: Sequence[str], path: Path, known_review: bool) -> Iterator[FieldError]:
    if not versions:
        yield required(path)
        return
    again = repeated(versions)
    for at, version in enumerate(versions):
        if at in again:
            yield invalid(path.at(at), version, "duplicate version")
            continue
        for problem in name_formats.dns1035_label(version):
            yield invalid(path.at(at), version, problem)
    if known_review and not has_known_review(versions):
        yield invalid(path, list(versions), f"must include at least one of {', '.join(REVIEW_VERSIONS)}")


def has_known_review(versions: Sequence[str]) -> bool:
    """Return whether the list contains a supported version of ConversionReview."""
    return any(version in REVIEW_VERSIONS for version in versions)
