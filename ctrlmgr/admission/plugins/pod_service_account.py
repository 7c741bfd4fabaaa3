"""ServiceAccount: sets the service account of pods, and mounts its token.

Guarantees:
- The plugin admits a new pod only if the pod's service account exists. A controller creates the account `default` in
  every new namespace. If a pod uses the account `default`, the creation of the pod waits briefly for this account. The
  creation never waits for other accounts.
- The plugin keeps the token volume, the mounts and the image pull secrets that a pod sets itself.
- Pods of an account with the annotation `kubernetes.io/enforce-mountable-secrets` may use only the Secrets that the
  account names.

Rules come from Kubernetes' `plugin/pkg/admission/serviceaccount/admission.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from ctrlmgr.admission.admission_plugin import Decision, Plugin
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.clock import Clock
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.generated_names import generate_name
from ctrlmgr.engine.operations import Await, Operation
from ctrlmgr.golang.go_text import quote
from ctrlmgr.kinds.core.pod.volumes.defaults import TOKEN_VOLUME, token_source

SERVICE_ACCOUNTS: Final = Resource("", "serviceaccounts")
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""The directory in which clients in a pod find their service account token."""

_DEFAULT = "default"
_ENFORCES = "kubernetes.io/enforce-mountable-secrets"
_MIRROR = "kubernetes.io/config.mirror"
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
"""The strings that Go's `strconv.ParseBool` accepts as true."""

_PATIENCE = 1.5
"""The maximum wait for an account `default`, in seconds (Kubernetes checks ten times, every 100 to 200 ms)."""
_TRIES = 10


class _Named(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    annotations: dict[str, str] | None = None


_NO_METADATA: Final = _Metadata()


class _Account(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    secrets: tuple[_Named, ...] | None = None
    image_pull_secrets: tuple[_Named, ...] | None = None
    automount_service_account_token: bool | None = None
    metadata: _Metadata = _NO_METADATA

    @property
    def enforces(self) -> bool:
        """Return whether the pods of a service account may use only the Secrets that the account names."""
        return (self.metadata.annotations or {}).get(_ENFORCES) in _TRUE


class _Use(NamedTuple):
    """A reference to a Secret in a pod: the place of the reference, and the Secret's name."""

    place: str
    secret: str


class ServiceAccount(Plugin):
    """Sets the service account of pods, mounts its token, and sets its image pull secrets."""

    name: ClassVar[str] = "ServiceAccount"

    def __init__(self, clock: Clock) -> None:
        """Create the plugin; `clock` measures how long the plugin waits for a service account."""
        self._clock = clock

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations of pods, and additions of ephemeral containers."""
        if resource != PODS:
            return False
        return (subresource, operation) in (("", Verb.CREATE), ("ephemeralcontainers", Verb.UPDATE))

    def admit(self, attributes: Attributes) -> Decision:
        """Set the fields of the pod that depend on its service account.

        Mirror pods have no service account, so the plugin only validates them.
        """
        if attributes.subresource:
            return None
        fields = attributes.fields
        if _is_mirror(fields):
            self.validate(attributes)
            return None
        spec = fields.setdefault("spec", {})
        name = spec.get("serviceAccountName") or _DEFAULT
        found = _find(attributes, name)
        if found is None and name == _DEFAULT:
            return self._complete_later(attributes, spec)
        _complete(attributes, spec, name, found or _account(attributes, name))
        return None

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if the service account does not exist, or does not allow the Secrets of the pod."""
        fields = attributes.fields
        spec = fields.get("spec") or {}
        if not attributes.subresource and _is_mirror(fields):
            _check_mirror(attributes, spec)
            return
        name = spec.get("serviceAccountName") or ""
        if not name:
            pod = f"{attributes.namespace}/{attributes.called()}"
            raise attributes.forbidden(f"no service account specified for pod {pod}")
        if attributes.memory.get(self.name) == (name, attributes.view.revision):
            return  # the account exists, because `admit` has just read it
        account = _account(attributes, name)
        if account.view(_Account).enforces:
            _check_secrets(attributes, spec, account)

    def _complete_later(self, attributes: Attributes, spec: dict[str, Any]) -> Operation[None]:
        """Wait for the service account `default`, which a controller may be about to create."""
        state, now, idle = attributes.view, self._clock.monotonic, 0
        deadline = now() + _PATIENCE
        while _find(attributes, _DEFAULT) is None and idle < _TRIES and now() < deadline:
            seen = state.revision
            yield Await(seen + 1, _PATIENCE / _TRIES)
            idle += state.revision == seen
        _complete(attributes, spec, _DEFAULT, _account(attributes, _DEFAULT))


def _find(attributes: Attributes, name: str) -> Object | None:
    return attributes.view.get(SERVICE_ACCOUNTS, Key(attributes.namespace, name))


def _account(attributes: Attributes, name: str) -> Object:
    found = _find(attributes, name)
    if found is None:
        where = f"{attributes.namespace}/{name}"
        detail = f"error looking up service account {where}: serviceaccount {quote(name)} not found"
        raise attributes.forbidden(detail)
    return found


def _is_mirror(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is the mirror of a static pod on its node."""
    return _MIRROR in ((pod.get("metadata") or {}).get("annotations") or ())


def _complete(attributes: Attributes, spec: dict[str, Any], name: str, found: Object) -> None:
    account = found.view(_Account)
    if not account.enforces:
        attributes.memory[ServiceAccount.name] = (name, attributes.view.revision)
    changes = spec.get("serviceAccountName") != name or spec.get("serviceAccount") != name
    if changes:
        spec["serviceAccountName"] = spec["serviceAccount"] = name
    automounts = spec.get("automountServiceAccountToken")
    if automounts is None:
        automounts = account.automount_service_account_token
    if automounts is not False and _mount(attributes, spec):
        changes = True
    if not spec.get("imagePullSecrets") and account.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": each.name} for each in account.image_pull_secrets]
        changes = True
    if changes:
        attributes.changed(ServiceAccount.name)


def _mount(attributes: Attributes, spec: dict[str, Any]) -> bool:
    """Mount the service account token in each container that has no mount at the token's path.

    If the pod has no token volume, the function adds a volume for the token. The function changes the pod in place, and
    returns whether the pod has changed.
    """
    volumes, first = spec.get("volumes"), spec.get("initContainers")
    own = _token_volume(volumes) if volumes else ""
    name = own or generate_name(TOKEN_VOLUME, attributes.random)
    mounts = False
    containers = spec.get("containers") or ()
    for container in (*first, *containers) if first else containers:
        given = container.get("volumeMounts") or ()
        if not given or all(each.get("mountPath") != MOUNT_PATH for each in given):
            container["volumeMounts"] = [*given, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
            mounts = True
    if mounts and not own:
        spec["volumes"] = [*(volumes or ()), {"name": name, "projected": token_source()}]
    return mounts


def _token_volume(volumes: Sequence[Mapping[str, Any]]) -> str:
    """Return the name of the token volume that the pod already has; an empty string if the pod has none."""
    return next((each["name"] for each in volumes if each.get("name", "").startswith(TOKEN_VOLUME)), "")


def _check_mirror(attributes: Attributes, spec: Mapping[str, Any]) -> None:
    if spec.get("serviceAccountName"):
        raise attributes.forbidden("a mirror pod may not reference service accounts")
    if _names_secrets(spec):
        raise attributes.forbidden("a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise attributes.forbidden("a mirror pod may not use ServiceAccountToken volume projections")


_VOLUME_SECRETS = (
    ("azureFile", "secretName"),
    ("cephfs", "secretRef", "name"),
    ("cinder", "secretRef", "name"),
    ("flexVolume", "secretRef", "name"),
    ("rbd", "secretRef", "name"),
    ("secret", "secretName"),
    ("scaleIO", "secretRef", "name"),
    ("iscsi", "secretRef", "name"),
    ("storageos", "secretRef", "name"),
    ("csi", "nodePublishSecretRef", "name"),
)
"""The paths of the fields in volumes that name Secrets (Kubernetes' `pkg/api/v1/pod`, `VisitPodSecretNames`)."""


def _names_secrets(spec: Mapping[str, Any]) -> bool:
    kinds = ("initContainers", "containers", "ephemeralContainers")
    if spec.get("imagePullSecrets") or any(any(_used(spec, kind, "")) for kind in kinds):
        return True
    for volume in spec.get("volumes") or ():
        if any(_at(volume, path) is not None for path in _VOLUME_SECRETS):
            return True
        if any(each.get("secret") is not None for each in (volume.get("projected") or {}).get("sources") or ()):
            return True
    return False


def _at(fields: Any, path: Collection[str]) -> Any:
    for field in path:
        fields = (fields or {}).get(field)
    return fields


def _check_secrets(attributes: Attributes, spec: Mapping[str, Any], found: Object) -> None:
    account = found.view(_Account)
    mountable = {each.name for each in account.secrets or ()}
    uses = _used(spec, "ephemeralContainers", "ephemeral ") if attributes.subresource else _mounted(spec)
    suffix = f"is not allowed because service account {found.name} does not reference that"
    for use in uses:
        if use.secret not in mountable:
            raise attributes.forbidden(f'{use.place} secret.secretName="{use.secret}" {suffix} secret')
    if attributes.subresource:
        return
    pullable = {each.name for each in account.image_pull_secrets or ()}
    for index, each in enumerate(spec.get("imagePullSecrets") or ()):
        if (name := each.get("name") or "") not in pullable:
            raise attributes.forbidden(f'imagePullSecrets[{index}].name="{name}" {suffix} imagePullSecret')


def _mounted(spec: Mapping[str, Any]) -> Iterator[_Use]:
    for volume in spec.get("volumes") or ():
        if (source := volume.get("secret")) is not None:
            yield _Use("volume with", source.get("secretName") or "")
    yield from _used(spec, "initContainers", "init ")
    yield from _used(spec, "containers", "")


def _used(spec: Mapping[str, Any], field: str, kind: str) -> Iterator[_Use]:
    """Yield references to the Secrets in the environment variables of the containers in a field."""
    for container in spec.get(field) or ():
        place = f"{kind}container {container.get('name', '')} with"
        for each in container.get("env") or ():
            if (reference := (each.get("valueFrom") or {}).get("secretKeyRef")) is not None:
                yield _Use(f"{place} envVar {each.get('name', '')} referencing", reference.get("name") or "")
        for each in container.get("envFrom") or ():
            if (reference := each.get("secretRef")) is not None:
                yield _Use(f"{place} envFrom referencing", reference.get("name") or "")
