"""Validates the addresses of webhooks: URLs, references to Services, and certificates of authorities.

Source: apiserver `pkg/util/webhook/validation.go`; client-go `transport` for the errors of certificates.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.certificate_requests import authorities_problem
from ctrlmgr.golang import go_url

_FORM = "; desired format: https://host[/path]"
DEFAULT_PORT = 443


def validate_url(path: Path, url: str, *, https_only: bool = True) -> list[FieldError]:
    """Validate the URL of a webhook, which has the scheme https, a host, and otherwise at most a path."""
    try:
        parsed = go_url.parse(url)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{_FORM}")]
    errors: list[FieldError] = []
    if https_only and parsed.scheme != "https":
        errors.append(invalid(path, parsed.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not parsed.host:
        errors.append(invalid(path, parsed.host, f"host must be specified{_FORM}"))
    if parsed.user is not None:
        errors.append(invalid(path, parsed.user, "user information is not permitted in the URL"))
    if parsed.fragment:
        errors.append(invalid(path, parsed.fragment, "fragments are not permitted in the URL"))
    if parsed.query:
        errors.append(invalid(path, parsed.query, "query parameters are not permitted in the URL"))
    return errors


def validate_service(path: Path, service: Mapping[str, Any], *, name: str, namespace: str) -> list[FieldError]:
    """Validate a webhook's reference to a Service.

    Callers pass name and namespace as arguments, because Kubernetes confuses the two fields for some kinds.
    """
    errors: list[FieldError] = []
    if not name:
        errors.append(required(path.child("name")))
    if not namespace:
        errors.append(required(path.child("namespace")))
    port = service.get("port", DEFAULT_PORT)
    if problems := name_formats.port_number(port):
        errors.append(invalid(path.child("port"), port, "port is not valid: " + ", ".join(problems)))
    if (url_path := service.get("path")) is not None:
        errors += _validate_path(path.child("path"), url_path)
    return errors


def _validate_path(path: Path, url_path: str) -> list[FieldError]:
    if url_path in ("", "/"):
        return []
    if url_path == "//":
        return [invalid(path, url_path, "segment[0] may not be empty")]
    errors = [] if url_path.startswith("/") else [invalid(path, url_path, "must start with a '/'")]
    for at, segment in enumerate(url_path[1:].removesuffix("/").split("/")):
        if not segment:
            errors.append(invalid(path, url_path, f"segment[{at}] may not be empty"))
        else:
            errors += [
                invalid(path, url_path, f"segment[{at}]: {each}") for each in name_formats.dns1123_subdomain(segment)
            ]
    return errors


def validate_ca_bundle(path: Path, bundle: str) -> list[FieldError]:
    """Validate the certificates of authorities, which are PEM encoded in base64.

    An empty bundle of certificates is valid.
    """
    problem = authorities_problem(base64.b64decode(bundle))
    return [invalid(path, bundle, f"unable to load root certificates: {problem}")] if problem else []
