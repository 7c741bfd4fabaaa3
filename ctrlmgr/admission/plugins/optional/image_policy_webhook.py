"""ImagePolicyWebhook: asks another server whether pods may run their images.

Guarantees: each created or changed pod's images are sent to the server, together with the pod's annotations of
`*.image-policy.k8s.io/*`. Responses are cached; approvals and refusals have different TTLs. If the server does not
respond, pods are refused, unless the configuration allows pods in this case. If a pod is allowed without a response, an
annotation of the pod and an annotation of the audit event record that the server did not respond.

Rules come from Kubernetes' `plugin/pkg/admission/imagepolicy` and apiserver's `pkg/util/webhook`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.caches import TTLCache
from ctrlmgr.clock import Clock
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.calls.call import Call, CallOut, Credentials, Reply, Tries
from ctrlmgr.engine.calls.replies import is_success, unexpected
from ctrlmgr.engine.operations import Compute, Operation
from ctrlmgr.engine.validation.name_formats import qualified_name
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings.configuration_files import Document
from ctrlmgr.settings.kubeconfig import Access, load

FAILED_OPEN: Final = "alpha.image-policy.k8s.io/failed-open"
"""The annotation of a pod that was admitted without a response from the server."""

_PREFIX = "imagepolicywebhook.image-policy.k8s.io/"
_ASKED = ".image-policy.k8s.io/"
_API_VERSION, _KIND = "imagepolicy.k8s.io/v1alpha1", "ImageReview"
_PATIENCE = 30
"""The timeout of a call to the server, in seconds."""
_TRIES, _FACTOR = 5, 1.5
_ENTRIES: Final = 1024
_SIZE: Final = 8 * 1024 * 1024
"""The maximum total size of cached responses and their requests, in bytes."""
_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("containers", "initContainers"),
    "ephemeralcontainers": ("ephemeralContainers",),
}
"""The lists of containers whose images are sent to the server, by subresource of the pod."""

_encode = msgspec.json.Encoder().encode


class _Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    kubeconfig: str = msgspec.field(name="kubeConfigFile", default="")
    allow_ttl: int = msgspec.field(name="allowTTL", default=0)
    deny_ttl: int = msgspec.field(name="denyTTL", default=0)
    retry_backoff: int = msgspec.field(name="retryBackoff", default=0)
    default_allow: bool = msgspec.field(name="defaultAllow", default=False)


class _Configuration(msgspec.Struct, forbid_unknown_fields=True):
    policy: _Policy = msgspec.field(name="imagePolicy")


class _Bounds(NamedTuple):
    """The limits of a duration setting; -1 disables caching or retries, and 0 means the default."""

    unit: float
    """The unit of the duration setting, in seconds."""
    most: int
    usual: int


_TTL = 30 * 60
_BOUNDS: Final[Mapping[str, _Bounds]] = {
    "allowTTL": _Bounds(1.0, _TTL, 300),
    "denyTTL": _Bounds(1.0, _TTL, 30),
    "retryBackoff": _Bounds(0.001, 300_000, 500),
}


class _Status(msgspec.Struct, frozen=True):
    allowed: bool = False
    reason: str = ""
    annotations: dict[str, str] | None = msgspec.field(name="auditAnnotations", default=None)


class _Review(msgspec.Struct, frozen=True):
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")
    status: _Status = _Status()


class ImagePolicyWebhook(Plugin):
    """Refuses pods with images that the server does not allow."""

    name: ClassVar[str] = "ImagePolicyWebhook"

    def __init__(self, document: Document | None, clock: Clock) -> None:
        """Create the plugin for the server that `document` names.

        Raises `SettingsError` if `document` is invalid or None.
        """
        if document is None:
            raise SettingsError("ImagePolicyWebhook has no server: --admission-control-config-file must configure it")
        policy = document.converted(document.value, _Configuration).policy
        self._ttl = {
            True: _duration(document, "allowTTL", policy.allow_ttl),
            False: _duration(document, "denyTTL", policy.deny_ttl),
        }
        self._tries = Tries(_TRIES, _duration(document, "retryBackoff", policy.retry_backoff), _FACTOR)
        self._fails_open = policy.default_allow
        self._access = _access(document, policy.kubeconfig)
        self._statuses: TTLCache[bytes, _Status] = TTLCache(
            "image-policy-webhook", entries=_ENTRIES, size=_SIZE, clock=clock
        )

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: writes of pods, and additions of ephemeral containers."""
        return resource == PODS and subresource in _LISTS and operation in (Verb.CREATE, Verb.UPDATE)

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Raise `Forbidden` if the server does not allow the images."""
        spec = _spec(attributes)
        key = _encode(spec)
        status = self._statuses.get(key)
        if status is None:
            reply = yield from self._request_review(spec)
            try:
                status = _read(reply)
            except _NoAnswer as problem:
                self._fail(attributes, f'Post "{self._url}": {problem}' if reply.problem else str(problem))
                return
            self._statuses.put(key, status, self._ttl[status.allowed], len(key) + len(_encode(status)))
        for suffix, value in (status.annotations or {}).items():
            if not qualified_name(_PREFIX + suffix):
                attributes.annotations.setdefault(_PREFIX + suffix, value)
        if not status.allowed:
            words = f"image policy webhook backend denied one or more images: {status.reason}"
            raise attributes.forbidden(words if status.reason else "one or more images rejected by webhook backend")

    @property
    def _url(self) -> str:
        return f"{self._access.server}?timeout={_PATIENCE}s"

    def _request_review(self, spec: Mapping[str, Any]) -> Operation[Reply]:
        """Return the server's response about a pod's images."""
        review = {"kind": _KIND, "apiVersion": _API_VERSION, "metadata": {}, "spec": spec, "status": {"allowed": False}}
        access = self._access
        headers = yield Compute(access.headers)  # reading credentials may run a program or read a file
        call = Call(
            self._url,
            _encode(review),
            _PATIENCE,
            access.authority,
            credentials=Credentials(headers, access.certificate),
            server_name=access.server_name,
            is_checked=access.is_checked,
            tries=self._tries,
        )
        replies: list[Reply] = yield CallOut([call])
        return replies[0]

    def _fail(self, attributes: Attributes, problem: str) -> None:
        """After a failed call of the server, admit the write with annotations, or raise `Forbidden`."""
        if not self._fails_open:
            raise attributes.forbidden(problem)
        attributes.annotations[f"{_PREFIX}failed-open"] = "true"
        metadata = attributes.fields.setdefault("metadata", {})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), FAILED_OPEN: "true"}
        attributes.changed(self.name)


def _spec(attributes: Attributes) -> dict[str, Any]:
    """Return the spec of the ImageReview that is sent to the server."""
    pod = attributes.fields
    spec = pod.get("spec") or {}
    containers = [each for field in _LISTS[attributes.subresource] for each in spec.get(field) or ()]
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    review_spec: dict[str, Any] = {
        "containers": [{"image": each["image"]} if each.get("image") else {} for each in containers],
        "annotations": {key: annotations[key] for key in sorted(annotations) if _ASKED in key},
        "namespace": attributes.namespace,
    }
    return {field: value for field, value in review_spec.items() if value}


class _NoAnswer(Exception):
    pass


def _read(reply: Reply) -> _Status:
    """Return the server's response; raises `_NoAnswer` with client-go's error message if the call failed."""
    if reply.problem:
        raise _NoAnswer(reply.problem)
    if not is_success(reply):
        raise _NoAnswer(unexpected(reply))
    try:
        review = msgspec.json.decode(reply.body, type=_Review)
    except msgspec.DecodeError as problem:
        raise _NoAnswer(f"couldn't get version/kind; json parse error: {problem}") from problem
    if (review.kind, review.api_version) != (_KIND, _API_VERSION):
        raise _NoAnswer(f'no kind "{review.kind}" is registered for version "{review.api_version}" in scheme')
    return review.status


def _duration(document: Document, field: str, value: int) -> float:
    """Return a duration in seconds; raises `SettingsError` if the duration is outside the limits of the setting."""
    bounds = _BOUNDS[field]
    if value == -1:
        return 0.0
    if not 0 <= value <= bounds.most:
        unit = "milliseconds" if bounds.unit < 1 else "seconds"
        problem = f"{field} must be between 1 and {bounds.most} {unit}, 0 for {bounds.usual}, or -1 for none"
        raise document.refuse(problem, "imagePolicy", field)
    return (value or bounds.usual) * bounds.unit


def _access(document: Document, kubeconfig: str) -> Access:
    """Return the URL and the credentials of the server that the configuration names.

    Raises `SettingsError` if the kubeconfig file is missing or invalid.
    """
    file = document.file.parent / Path(kubeconfig).expanduser()
    if not kubeconfig or not file.is_file():
        raise document.refuse(f"kubeConfigFile must name a file, not {kubeconfig!r}", "imagePolicy", "kubeConfigFile")
    return load([file])
