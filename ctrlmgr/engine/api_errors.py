"""Creates the API's errors, with Kubernetes' messages, reasons and details (apimachinery `pkg/api/errors`)."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    NamespaceTerminating,
    NotFound,
    RequestTimeout,
    StatusCause,
    StatusDetails,
)

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def _about(resource: Resource, name: str) -> StatusDetails:
    return StatusDetails(name=name, group=resource.group, kind=resource.plural)


def not_found(resource: Resource, name: str) -> NotFound:
    """Return the 404 error for an object that does not exist."""
    return NotFound(f'{resource} "{name}" not found', details=_about(resource, name))


def already_exists(resource: Resource, name: str, *, terminating: bool) -> AlreadyExists:
    """Return the 409 error for a name that exists already.

    `terminating` says whether the object with this name is being deleted.
    """
    prefix = "object is being deleted: " if terminating else ""
    return AlreadyExists(f'{prefix}{resource} "{name}" already exists', details=_about(resource, name))


def no_free_name(resource: Resource, name: str) -> AlreadyExists:
    """Return the 409 error for a generated name that exists already (`NewGenerateNameConflict`)."""
    return AlreadyExists(
        f'{resource} "{name}" already exists, the server was not able to generate a unique name for the object',
        details=_about(resource, name)._replace(retry_after_seconds=1),
    )


def conflict(resource: Resource, name: str, detail: str = MODIFIED) -> Conflict:
    """Return the 409 error for a change that conflicts with the stored object."""
    return Conflict(f'Operation cannot be fulfilled on {resource} "{name}": {detail}', details=_about(resource, name))


def forbidden(resource: Resource, name: str, detail: str, *causes: StatusCause) -> Forbidden:
    """Return the 403 error for an action that no user may perform."""
    details = _about(resource, name)._replace(causes=causes)
    named = f'{resource} "{name}"' if name else str(resource)
    return Forbidden(f"{named} is forbidden: {detail}", details=details)


def terminating(resource: Resource, name: str, namespace: str) -> NamespaceTerminating:
    """Return the 403 error for a creation in a namespace that is being deleted."""
    cause = StatusCause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
    message = f"unable to create new content in namespace {namespace} because it is being terminated"
    details = _about(resource, name)._replace(causes=(cause,))
    return NamespaceTerminating(f'{resource} "{name}" is forbidden: {message}', details=details)


def too_large_version(requested: int, current: int) -> RequestTimeout:
    """Return the 504 error for a read at a revision that the log has not reached (`pkg/storage/errors.go`)."""
    cause = StatusCause("ResourceVersionTooLarge", "Too large resource version")
    return RequestTimeout(
        f"Timeout: Too large resource version: {requested}, current: {current}",
        details=StatusDetails(causes=(cause,), retry_after_seconds=1),
    )


def list_expired(expired: Expired, continue_token: str = "") -> Expired:
    """Return the 410 error for a list at a compacted revision; `continue_token` lets the client continue the list."""
    message = _CONTINUE_EXPIRED if continue_token else "The resourceVersion for the provided list is too old."
    return Expired(expired.asked, expired.oldest, message, continue_token=continue_token)


_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def internal(reason: str) -> InternalError:
    """Return the 500 error for an internal error (`apierrors.NewInternalError`)."""
    return InternalError(f"Internal error occurred: {reason}", details=StatusDetails(causes=(StatusCause("", reason),)))
