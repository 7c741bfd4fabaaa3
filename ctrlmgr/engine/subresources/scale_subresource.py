"""The subresource `/scale`, which reads and sets the number of replicas of a workload, independent of its kind.

Guarantees: a Scale has the uid and resourceVersion of its object. A write to a Scale is a write to its object, so all
rules of the object's kind apply. A write of the Scale changes only the replicas and their managers.

Source: `pkg/registry/apps/deployment/storage/storage.go` (`ScaleREST`), which is the same for each scalable kind, and
`pkg/apis/autoscaling/validation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from ctrlmgr.api.field import Path, errors_of, invalid, refuse
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.api_errors import conflict, internal
from ctrlmgr.engine.kind import GroupVersionKind, Kind, Replicas, Scaling
from ctrlmgr.engine.managedfields import FieldManager
from ctrlmgr.engine.managedfields.scale_handler import SCALE_VERSION, from_scale, to_scale
from ctrlmgr.engine.operations import Answer, Operation, Target
from ctrlmgr.engine.request_options import Body, GetOptions, Requester, WriteOptions
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.subresources.handler import Handler, decode
from ctrlmgr.engine.validation.name_formats import subdomain_name
from ctrlmgr.engine.validation.object_meta import validate_metadata
from ctrlmgr.engine.verbs import read_verbs
from ctrlmgr.engine.verbs.change import decide_change
from ctrlmgr.engine.writes.attempts import RETRIES, decide_and_append
from ctrlmgr.engine.writes.body_metadata import check_place
from ctrlmgr.engine.writes.patching import Patch
from ctrlmgr.engine.writes.write_context import Request, Requests
from ctrlmgr.errors import BadRequest
from ctrlmgr.kinds.label_selectors import selector_text

SCALES = Resource("autoscaling", "scales")

_SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_REPLICAS = ("spec", "replicas")
_UNKNOWN_SCALE = 'no kind is registered for the type v1.Scale in scheme "pkg/apiserver/customresource_handler.go:781"'
_UNSET = -(2**31)
"""The number of replicas in the Scale of an object that sets no number."""

NewScale = Callable[[Unstructured], Unstructured]
"""A function that returns the new Scale, given the current Scale."""


class ScaleHandler(Handler):
    """Reads and writes Scales."""

    def get(self, engine: Requests, target: Target, options: GetOptions) -> Operation[Object]:
        """Return the Scale of an object."""
        obj = yield from read_verbs.get(engine.call_inputs, target, options)
        return _scale_of(engine, target, obj)

    def update(
        self, engine: Requests, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Replace the Scale of an object."""
        request = engine.request(target, options, requester)
        desired = _decoded(engine, body, request)
        check_place(request, desired)
        manager = _manager(engine)

        def replaced(live: Unstructured) -> Unstructured:
            return manager.update(live, desired, request.manager, request.now, "scale")

        return (yield from _write(engine, request, replaced, uid=metadata_of(desired).get("uid") or ""))

    def patch(
        self, engine: Requests, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Patch the Scale of an object."""
        request = engine.request(target, options, requester)
        patch = Patch(body, options)
        codec, manager = engine.kinds.codec_for(_SCALE), _manager(engine)

        def patched(live: Unstructured) -> Unstructured:
            fields, warnings = patch.apply(live, codec, codec.schema)
            request.warnings += warnings
            return manager.update(live, fields, request.manager, request.now, "scale")

        def applied(live: Unstructured) -> Unstructured:
            fields, repeated = patch.applied()
            merged = manager.apply(live, fields, request.manager, request.now, force=options.force, subresource="scale")
            request.warnings += patch.check_applied(repeated)
            return codec.read(merged).fields

        return _write(engine, request, applied if patch.is_apply else patched)


def _decoded(engine: Requests, body: Body, request: Request) -> Unstructured:
    """Decode a Scale; for a custom kind, all errors about a Scale have the same generic message, as in Kubernetes."""
    try:
        return decode(engine, _SCALE, body, request)
    except BadRequest as error:
        if request.plan.kind.is_custom:
            raise BadRequest(_UNKNOWN_SCALE) from error
        raise


def _manager(engine: Requests) -> FieldManager:
    return FieldManager(engine.kinds.codec_for(_SCALE).schema, SCALE_VERSION)


def _write(engine: Requests, request: Request, new_scale: NewScale, *, uid: str = "") -> Operation[Answer]:
    facet = _Facet(request)

    def changed(ctx: Context, current: Object) -> Unstructured:
        return _rescaled(request, request.plan.live(current), new_scale, facet)

    answer = yield from decide_and_append(
        request, lambda: decide_change(request, changed, uid=uid, facet=facet), limit=RETRIES
    )
    if answer.object is None:
        return answer
    return answer._replace(object=_scale_of(engine, request.target, answer.object))


def _rescaled(request: Request, obj: Unstructured, new_scale: NewScale, facet: _Facet) -> Unstructured:
    """Return the object with the number of replicas in its new Scale, which is stored in `facet`.

    The object is changed in place.
    """
    scaling, version = _scaling(request.plan.kind), request.plan.kind.gvk.api_version
    metadata = obj["metadata"]
    entries, paths = metadata.get("managedFields") or [], scaling.paths
    live = _scale(obj, scaling)
    live["metadata"]["managedFields"] = to_scale(entries, paths)
    scale = new_scale(live)
    check_place(request, scale)
    facet.keep(scale, live)
    if request.plan.kind.scaling is None:
        _validate(scale)
    desired = metadata_of(scale)
    if desired.get("uid") and desired["uid"] != metadata["uid"]:
        detail = f"Precondition failed: UID in precondition: {desired['uid']}, UID in object meta: {metadata['uid']}"
        resource = request.plan.resource
        raise conflict(Resource(resource.group, f"{resource.plural}/scale"), request.target.name, detail)
    if _replicas(scale) == _UNSET:
        raise BadRequest(f'the spec replicas field "{_shown(request.plan.kind)}" cannot be empty')
    scaling.write(obj, _replicas(scale))
    metadata["resourceVersion"] = desired.get("resourceVersion") or metadata["resourceVersion"]
    metadata["managedFields"] = from_scale(entries, desired.get("managedFields") or [], version, paths)
    return obj


class _Facet:
    """The Scale that admission receives when a client writes it.

    Admission gets a Scale in the form in which the client sent it, and may change it. For example, if the Scale in a
    PUT has no uid and no resourceVersion, admission sees neither.
    """

    kind = _SCALE

    def __init__(self, request: Request) -> None:
        self._desired: Unstructured = {}
        self._live: Unstructured = {}
        self._scaling = _scaling(request.plan.kind)
        self._is_custom = request.plan.kind.scaling is not None

    def keep(self, desired: Unstructured, live: Unstructured) -> None:
        """Set the new Scale, which the client sent or which a patch produced, and the current Scale."""
        self._desired, self._live = desired, live

    def proposed(self) -> tuple[Unstructured, Unstructured]:
        """Return the new Scale and the current Scale."""
        return deepcopy(self._desired), self._live

    def shown(self, obj: Unstructured) -> Unstructured:
        """Return the Scale of an object."""
        return _scale(obj, self._scaling)

    def take(self, obj: Unstructured, shown: Unstructured) -> None:
        """Validate the Scale, and set the object's replicas to those of the Scale."""
        if not self._is_custom:
            _validate(shown)
        self._scaling.write(obj, _replicas(shown))


def _replicas(fields: Unstructured) -> int:
    return int((fields.get("spec") or {}).get("replicas") or 0)


def _scale_of(engine: Requests, target: Target, obj: Object) -> Object:
    fields = _scale(engine.plan(target.kind).live(obj), _scaling(target.kind))
    if fields["spec"]["replicas"] == _UNSET:
        raise internal(f'the spec replicas field "{_shown(target.kind)}" does not exist')
    return Object(SCALES, engine.kinds.codec_for(_SCALE).encode(fields), obj.revision)


def scale_of(kind: Kind, obj: Unstructured) -> Unstructured:
    """Return the Scale of an object of a scalable kind.

    Raises `UnknownError` if the number of replicas is not a number.
    """
    return _scale(obj, _scaling(kind))


def _shown(kind: Kind) -> str:
    return "." + ".".join(_scaling(kind).paths.get(kind.gvk.api_version, ()))


def _scale(obj: Unstructured, scaling: Scaling) -> Unstructured:
    """Return the Scale of an object, with `_UNSET` replicas if the object does not set the replicas."""
    metadata = {field: obj["metadata"][field] for field in _SHOWN if field in obj["metadata"]}
    desired, found, selector = scaling.read(obj)
    status: dict[str, Any] = {"replicas": found}
    if selector:
        status["selector"] = selector
    spec = {"replicas": _UNSET if desired is None else desired}
    return {"kind": "Scale", "apiVersion": SCALE_VERSION, "metadata": metadata, "spec": spec, "status": status}


def _scaling(kind: Kind) -> Scaling:
    return kind.scaling or _Workload(kind.gvk.api_version)


class _Workload:
    """The way in which Kubernetes' built-in kinds are scaled."""

    def __init__(self, api_version: str) -> None:
        self.paths: Mapping[str, Sequence[str]] = {api_version: _REPLICAS}

    def read(self, obj: Unstructured) -> Replicas:
        """Return the replicas and the selector from the object's spec and status."""
        found = int((obj.get("status") or {}).get("replicas") or 0)
        return Replicas(_replicas(obj), found, _selector((obj.get("spec") or {}).get("selector") or {}))

    def write(self, obj: Unstructured, replicas: int) -> None:
        """Set the replicas in the spec."""
        obj["spec"]["replicas"] = replicas


def _validate(scale: Unstructured) -> None:
    """Validate a Scale as Kubernetes does for built-in kinds; custom objects are validated as a whole."""
    metadata = metadata_of(scale)
    errors = errors_of(lambda: validate_metadata(metadata, namespaced=True, name_check=subdomain_name))
    if _replicas(scale) < 0:
        errors.append(invalid(Path("spec.replicas"), _replicas(scale), "must be greater than or equal to 0"))
    if errors:
        raise refuse("Scale", "autoscaling", metadata.get("name", ""), errors)


def _selector(selector: Unstructured) -> str:
    """Return a selector in the form of a query; the argument is a LabelSelector, or a ReplicationController's map."""
    is_map = not selector.keys() <= {"matchLabels", "matchExpressions"}
    return selector_text({"matchLabels": selector} if is_map else selector)
