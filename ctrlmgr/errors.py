"""Defines the errors that ctrlmgr raises; the tree shows how the classes inherit.

    CtrlmgrError
    ├── ApiError                  code and reason on the class, details on the instance: a metav1.Status
    │   ├── BadRequest            400
    │   ├── DeniedByWebhook       as the webhook says, 400 if it says nothing
    │   ├── Unauthorized          401
    │   ├── Forbidden             403
    │   │   └── NamespaceTerminating   403, cause NamespaceTerminating; lost race
    │   ├── NotFound              404   lost race
    │   ├── MethodNotAllowed      405
    │   ├── NotAcceptable         406
    │   ├── AlreadyExists         409   lost race
    │   ├── Conflict              409   retryable, lost race: read again, decide again
    │   │   └── ApplyConflict     409   causes name the managers; `force` takes their fields
    │   ├── Expired               410
    │   ├── RequestEntityTooLarge 413
    │   ├── UnsupportedMediaType  415
    │   ├── Invalid               422   causes name the fields
    │   ├── TooManyRequests       429   retryable
    │   ├── InternalError         500
    │   ├── UnknownError          500, without a reason: where Kubernetes passes an error on as it came
    │   ├── ServiceUnavailable    503   retryable
    │   └── RequestTimeout        504   retryable
    ├── LogError
    │   ├── LogUnavailable        retryable: nothing was written
    │   ├── OutcomeUnknown        the append may or may not be in the log
    │   ├── LogCorrupt            stop: a gap, a broken chain, a bad row
    │   ├── LogRolledBack         stop: the database is older than its anchor
    │   ├── SchemaOutdated        stop: run `ctrlmgr migrate`
    │   ├── QueryRefused          the caller's SQL is wrong, or would write
    │   └── LogClosed             the log was closed under the caller
    ├── Fenced                    this term is over: step down, do not retry
    ├── TerminalError             a reconcile failed: record it, do not retry
    ├── ShutDown                  a queue is closed (control flow, never logged)
    ├── RecordingError            a recording file cannot be used: file, line, reason
    └── SettingsError             file or variable, key, what was wrong, what would be right

The attributes `retryable` and `lost_race` of an error tell callers how to react; callers do not compare message texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple


class CtrlmgrError(Exception):
    """Something went wrong in ctrlmgr."""

    default_message: ClassVar[str] = "Something went wrong in ctrlmgr."
    """The message of an error that is raised without one."""

    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later without a change of its arguments."""

    lost_race: ClassVar[bool] = False
    """Whether another writer may simply have been first: the caller reads again and decides again.

    A lost race is normal for a controller, whose cache is always a moment behind.
    """

    def __init__(self, message: str | None = None) -> None:
        """Create an error with a message; the default is the class's `default_message`."""
        super().__init__(message or self.default_message)


class StatusCause(NamedTuple):
    """One cause of a refusal (meta/v1 StatusCause); empty strings are omitted in JSON."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(NamedTuple):
    """The subject of a refusal (meta/v1 StatusDetails); `kind` is a resource (`services`) or a kind (`Service`)."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class ApiError(CtrlmgrError):
    """The API refused a request."""

    default_message = "The API refused a request."

    code: int = 500
    reason: str = "InternalError"
    warnings: Sequence[str] = ()
    """The texts of the response's `Warning` headers."""
    annotations: Mapping[str, str] = {}
    """The annotations that the request's audit event gets."""
    refused_by: str = ""
    """The name of the admission plugin that refused the request; empty if no plugin refused it."""
    is_final: bool = False
    """Whether the refusal is final on any state, because another process, such as a webhook, refused the request."""

    def __init__(self, message: str | None = None, *, details: StatusDetails | None = None) -> None:
        """Create an error with the `details` of the refusal."""
        super().__init__(message)
        self.details = details


class BadRequest(ApiError):
    """The request is malformed."""

    default_message = "The request is malformed."

    code = 400
    reason = "BadRequest"


class DeniedByWebhook(ApiError):
    """An admission webhook denied the request."""

    default_message = "An admission webhook denied the request."

    reason = ""
    is_final = True

    def __init__(self, message: str, code: int, reason: str = "", details: StatusDetails | None = None) -> None:
        """Create an error with the webhook's HTTP status code and reason."""
        super().__init__(message, details=details)
        self.code, self.reason = code, reason


class Unauthorized(ApiError):
    """Unauthorized"""  # noqa: D400, D415  # Kubernetes' message has no full stop

    default_message = "Unauthorized"

    code = 401
    reason = "Unauthorized"


class Forbidden(ApiError):
    """The request is not allowed."""

    default_message = "The request is not allowed."

    code = 403
    reason = "Forbidden"


class NamespaceTerminating(Forbidden):
    """Nothing can be created in a namespace that is being terminated."""

    default_message = "Nothing can be created in a namespace that is being terminated."

    lost_race = True


class NotFound(ApiError):
    """The object does not exist."""

    default_message = "The object does not exist."

    code = 404
    reason = "NotFound"
    lost_race = True


class MethodNotAllowed(ApiError):
    """the server does not allow this method on the requested resource"""  # noqa: D400, D415  # Kubernetes' message

    default_message = "the server does not allow this method on the requested resource"

    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(ApiError):
    """None of the media types asked for can be produced."""

    default_message = "None of the media types asked for can be produced."

    code = 406
    reason = "NotAcceptable"


class AlreadyExists(ApiError):
    """An object of that name exists already."""

    default_message = "An object of that name exists already."

    code = 409
    reason = "AlreadyExists"
    lost_race = True


class Conflict(ApiError):
    """The object has been modified; apply your changes to the latest version and try again."""

    default_message = "The object has been modified; apply your changes to the latest version and try again."

    code = 409
    reason = "Conflict"
    retryable = True
    lost_race = True

    def __init__(
        self,
        message: str | None = None,
        *,
        expected: int | None = None,
        actual: int = 0,
        details: StatusDetails | None = None,
    ) -> None:
        """Create an error with the `expected` and the `actual` revision; 0 means that the object does not exist."""
        super().__init__(message, details=details)
        self.expected = expected
        self.actual = actual


class ApplyConflict(Conflict):
    """A server-side apply would change fields that others manage."""

    default_message = "A server-side apply would change fields that others manage."

    retryable = False
    lost_race = False


class Expired(ApiError):
    """The requested revision has been compacted away."""

    default_message = "The requested revision has been compacted away."

    code = 410
    reason = "Expired"

    def __init__(self, requested: int, oldest: int, message: str = "", *, continue_token: str = "") -> None:
        """Report that revision `requested` was compacted; `oldest` is the oldest revision that is still complete.

        With `continue_token`, a client can continue the expired list at the newest revision.
        """
        super().__init__(message or f"too old resource version: {requested} ({oldest})")
        self.asked = requested
        self.oldest = oldest
        self.continue_token = continue_token


class RequestEntityTooLarge(ApiError):
    """The request is too large."""

    default_message = "The request is too large."

    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """The body of the request was in a format that cannot be read."""

    default_message = "The body of the request was in a format that cannot be read."

    code = 415
    reason = "UnsupportedMediaType"


class Invalid(ApiError):
    """The object or the options are not valid; `details.causes` name the fields."""

    default_message = "The object or the options are not valid; `details.causes` name the fields."

    code = 422
    reason = "Invalid"


class TooManyRequests(ApiError):
    """Too many appends are waiting; try again in a moment."""

    default_message = "Too many appends are waiting; try again in a moment."

    code = 429
    reason = "TooManyRequests"
    retryable = True


class InternalError(ApiError):
    """Something went wrong in the server."""

    default_message = "Something went wrong in the server."


class UnknownError(ApiError):
    """The server failed in a way that has no reason."""

    default_message = "The server failed in a way that has no reason."

    reason = ""


class ConversionFailed(UnknownError):
    """A conversion webhook was asked, and there is no object to show for it."""

    default_message = "A conversion webhook was asked, and there is no object to show for it."

    is_final = True

    def __init__(self, source: str, problem: str) -> None:
        """Report a failed conversion; `source` is the version and kind in Go's form."""
        super().__init__(f"conversion webhook for {source} {problem}")
        self._problem = problem

    def of(self, source: str) -> ConversionFailed:
        """Return an error with the same failure for another version."""
        return ConversionFailed(source, self._problem)


class ServiceUnavailable(ApiError):
    """The server cannot do this now; nothing was changed."""

    default_message = "The server cannot do this now; nothing was changed."

    code = 503
    reason = "ServiceUnavailable"
    retryable = True


class RequestTimeout(ApiError):
    """The request could not be completed in time; whether it took effect is not known."""

    default_message = "The request could not be completed in time; whether it took effect is not known."

    code = 504
    reason = "Timeout"
    retryable = True


class LogError(CtrlmgrError):
    """The event log failed."""

    default_message = "The event log failed."

    place: str = ""
    """The file that failed; only the server's log contains the path, because clients need not know the server's
    paths.
    """


class LogUnavailable(LogError):
    """The event log cannot be reached; nothing was written. The cause is in `__cause__`."""

    default_message = "The event log cannot be reached; nothing was written. The cause is in `__cause__`."

    retryable = True


class OutcomeUnknown(LogError):
    """The connection failed while an append was being committed: it may or may not be in the log."""

    default_message = "The connection failed while an append was being committed: it may or may not be in the log."


class LogCorrupt(LogError):
    """The event log is damaged."""

    default_message = "The event log is damaged."

    def __init__(self, message: str | None = None, *, revision: int | None = None) -> None:
        """Report damage of the log; `revision` is the first damaged revision, if it is known."""
        super().__init__(message)
        self.revision = revision


class LogRolledBack(LogError):
    """The database is older than its anchor: it was restored from a backup, or lost its newest writes."""

    default_message = "The database is older than its anchor: it was restored from a backup, or lost its newest writes."


class SchemaOutdated(LogError):
    """The database schema is not this version's; run `ctrlmgr migrate`."""

    default_message = "The database schema is not this version's; run `ctrlmgr migrate`."


class CopyUnfinished(SchemaOutdated):
    """The database holds an unfinished copy of a log; the command that began the copy can finish it."""

    default_message = (
        "the database holds an unfinished copy of a log; run the same `ctrlmgr copy` or `ctrlmgr backup` again to "
        "finish it"
    )


class QueryRefused(LogError):
    """The database refused the query."""

    default_message = "The database refused the query."


class UnknownRelation(QueryRefused):
    """No table or view has this name."""

    default_message = "No table or view has this name."


class LogClosed(LogError):
    """The event log is closed."""

    default_message = "The event log is closed."


class Fenced(CtrlmgrError):
    """The leader term of this append is over."""

    default_message = "The leader term of this append is over."

    def __init__(self, message: str | None = None, *, current: int = 0) -> None:
        """Create an error with the `current` term of the log; 0 means that the term is unknown."""
        super().__init__(message)
        self.current = current


class TerminalError(CtrlmgrError):
    """Reconciling this key cannot succeed; it is recorded and not retried."""

    default_message = "Reconciling this key cannot succeed; it is recorded and not retried."


class ShutDown(CtrlmgrError):
    """The queue is shut down."""

    default_message = "The queue is shut down."


class RecordingError(CtrlmgrError):
    """The recording cannot be used."""

    default_message = "The recording cannot be used."

    def __init__(self, file: str, line: int, reason: str) -> None:
        """Report a problem in line `line` of the recording, counted from 1; 0 means the whole file."""
        super().__init__(f"{file}:{line}: {reason}" if line else f"{file}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason


class SettingsError(CtrlmgrError):
    """A setting is wrong."""

    default_message = "A setting is wrong."
