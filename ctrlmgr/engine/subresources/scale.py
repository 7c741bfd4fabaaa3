"""`/scale`: how many replicas a workload shall have, for who need not know what kind of workload it is.

Guarantees: a Scale is its object in another light: their uids and versions are the same, writing one is a write of the
other by all of its rules, and nothing but the replicas (and who manages them) changes.

Source: `pkg/registry/apps/deployment/storage/storage.go` (`ScaleREST`), the same for each scalable kind, and
`pkg/apis/autoscaling/validation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ctrlmgr.api.field import Path, invalid, refuse
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.engine.managedfields import FieldManager
from ctrlmgr.engine.managedfields.scale import SCALE_VERSION, from_scale, to_scale
from ctrlmgr.engine.operations import Answer, Operation, Target
from ctrlmgr.engine.options import Body, GetOptions, Requester, WriteOptions
from ctrlmgr.engine.refusals import conflict
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.subresources.handler import Handler, decode
from ctrlmgr.engine.validation.metadata import validate_metadata
from ctrlmgr.engine.validation.names import subdomain_name
from ctrlmgr.engine.verbs import reading
from ctrlmgr.engine.verbs.attempts import RETRIES, settle
from ctrlmgr.engine.verbs.change import change
from ctrlmgr.engine.verbs.patching import Patch
from ctrlmgr.engine.verbs.place import check_place
from ctrlmgr.engine.verbs.request import Request
from ctrlmgr.kinds.label_selectors import selector_text

if TYPE_CHECKING:
    from ctrlmgr.engine.engine import Engine

SCALES = Resource("autoscaling", "scales")

_SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_REPLICAS = ("spec", "replicas")

NewScale = Callable[[Unstructured], Unstructured]
"""Makes what a Scale shall be of what it is."""


class ScaleHandler(Handler):
    """Reads and writes Scales."""

    def get(self, engine: Engine, target: Target, options: GetOptions) -> Operation[Object]:
        """Return the Scale of an object."""
        obj = yield from reading.get(engine.cacher, target, options)
        return _scale_of(engine, target, obj)

    def update(
        self, engine: Engine, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Replace a Scale."""
        request = engine.request(target, options, requester)
        wanted = decode(engine, _SCALE, body, request)
        check_place(request, wanted)
        manager = _manager(engine)

        def replaced(live: Unstructured) -> Unstructured:
            return manager.update(live, wanted, request.manager, request.now, "scale")

        return _write(engine, request, replaced, uid=metadata_of(wanted).get("uid") or "")

    def patch(
        self, engine: Engine, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Patch a Scale."""
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


def _manager(engine: Engine) -> FieldManager:
    return FieldManager(engine.kinds.codec_for(_SCALE).schema, SCALE_VERSION)


def _write(engine: Engine, request: Request, new_scale: NewScale, *, uid: str = "") -> Operation[Answer]:
    def changed(ctx: Context, current: Object) -> Unstructured:
        return _rescaled(request, request.plan.live(current), new_scale)

    answer = yield from settle(request, lambda: change(request, changed, uid=uid, facet=_FACET), limit=RETRIES)
    if answer.object is None:
        return answer
    return answer._replace(object=_scale_of(engine, request.target, answer.object))


def _rescaled(request: Request, obj: Unstructured, new_scale: NewScale) -> Unstructured:
    """Return an object (its own dicts, used up) with the replicas that its Scale shall have."""
    metadata, version = obj["metadata"], request.plan.kind.gvk.api_version
    entries, paths = metadata.get("managedFields") or [], {version: _REPLICAS}
    live = _scale(obj)
    live["metadata"]["managedFields"] = to_scale(entries, paths)
    scale = new_scale(live)
    check_place(request, scale)
    _validate(scale)
    wanted = metadata_of(scale)
    if wanted.get("uid") and wanted["uid"] != metadata["uid"]:
        detail = f"Precondition failed: UID in precondition: {wanted['uid']}, UID in object meta: {metadata['uid']}"
        resource = request.plan.resource
        raise conflict(Resource(resource.group, f"{resource.plural}/scale"), request.target.name, detail)
    obj["spec"]["replicas"] = _replicas(scale)
    metadata["resourceVersion"] = wanted.get("resourceVersion") or ""
    metadata["managedFields"] = from_scale(entries, wanted.get("managedFields") or [], version, paths)
    return obj


class _Facet:
    """What admission sees of an object when its Scale is written."""

    kind = _SCALE

    def shown(self, obj: Unstructured) -> Unstructured:
        """Return its Scale."""
        return _scale(obj)

    def take(self, obj: Unstructured, shown: Unstructured) -> None:
        """Take the replicas, once they are valid."""
        _validate(shown)
        obj["spec"]["replicas"] = _replicas(shown)


_FACET = _Facet()


def _validate(scale: Unstructured) -> None:
    metadata = metadata_of(scale)
    errors = validate_metadata(metadata, namespaced=True, name_check=subdomain_name)
    if _replicas(scale) < 0:
        errors.append(invalid(Path("spec.replicas"), _replicas(scale), "must be greater than or equal to 0"))
    if errors:
        raise refuse("Scale", "autoscaling", metadata.get("name", ""), errors)


def _replicas(fields: Unstructured) -> int:
    return int((fields.get("spec") or {}).get("replicas") or 0)


def _scale_of(engine: Engine, target: Target, obj: Object) -> Object:
    fields = _scale(engine.plan(target.kind).live(obj))
    return Object(SCALES, engine.kinds.codec_for(_SCALE).encode(fields), obj.revision)


def _scale(obj: Unstructured) -> Unstructured:
    metadata = {field: obj["metadata"][field] for field in _SHOWN if field in obj["metadata"]}
    status: dict[str, Any] = {"replicas": int((obj.get("status") or {}).get("replicas") or 0)}
    if selector := _selector((obj.get("spec") or {}).get("selector") or {}):
        status["selector"] = selector
    replicas = {"replicas": _replicas(obj)}
    return {"kind": "Scale", "apiVersion": SCALE_VERSION, "metadata": metadata, "spec": replicas, "status": status}


def _selector(selector: Unstructured) -> str:
    """Write a selector as a query: a LabelSelector, or (of a ReplicationController) a map."""
    is_map = not selector.keys() <= {"matchLabels", "matchExpressions"}
    return selector_text({"matchLabels": selector} if is_map else selector)
