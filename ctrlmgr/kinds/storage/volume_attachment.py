"""The strategy of VolumeAttachments, which request the attachment of a volume to a node, and report the result.

Source: Kubernetes `pkg/apis/storage/validation/validation.go`, `pkg/apis/storage/v1/zz_generated.defaults.go` and
`pkg/registry/storage/volumeattachment/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, required, too_long
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.apps.templates import SPEC
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.core.persistent_volume import validate_inline_spec
from ctrlmgr.kinds.core.pod.volumes.defaults import default_volume_source
from ctrlmgr.kinds.core.volume_sources import driver_name
from ctrlmgr.kinds.simple_strategies import GuardedStrategy
from ctrlmgr.kinds.spec_difference import shown, with_empties

_SOURCE = SPEC.child("source")
_STATUS = Path("status")
_NAME, _INLINE = "persistentVolumeName", "inlineVolumeSpec"
_ONE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
_METADATA_SIZE = 256 * 1024
_MESSAGE_SIZE = 1024
_HIGHEST_CODE = 2**31 - 1


class VolumeAttachmentStrategy(GuardedStrategy):
    """The strategy of the kind storage.k8s.io/v1 VolumeAttachment."""

    returns_deleted = True
    status_keeps = METADATA
    compares_metadata = False

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the source of an inline volume."""
        if (inline := _source_of(obj).get(_INLINE)) is not None:
            default_volume_source(inline)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the volume, the node and the attacher of a new VolumeAttachment, and the status."""
        spec, source = obj.get("spec") or {}, _source_of(obj)
        errors = driver_name(spec.get("attacher") or "", SPEC.child("attacher"))
        errors += _validate_source(source)
        errors += each_problem(name_formats.dns1123_subdomain, spec.get("nodeName") or "", SPEC.child("nodeName"))
        errors += _validate_status(obj.get("status") or {})
        if (name := source.get(_NAME)) is not None:
            errors += each_problem(name_formats.dns1123_subdomain, name, _SOURCE.child(_NAME))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the spec of a VolumeAttachment is unchanged."""
        spec = new.get("spec") or {}
        if spec == (old.get("spec") or {}):
            return []
        written = with_empties(spec, ctx.sent_at("spec"))
        return [invalid(SPEC, shown("VolumeAttachmentSpec", written), IMMUTABLE)]


def _source_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    source: dict[str, Any] = (obj.get("spec") or {}).get("source") or {}
    return source


def _validate_source(source: Mapping[str, Any]) -> list[FieldError]:
    name, inline = source.get(_NAME), source.get(_INLINE)
    if inline is None:
        if name is None:
            return [required(_SOURCE, _ONE)]
        return [] if name else [required(_SOURCE.child(_NAME), "must specify non empty persistentVolumeName")]
    if name is not None:
        return [forbidden(_SOURCE, _ONE)]
    return validate_inline_spec(inline, _SOURCE.child(_INLINE))


def _validate_status(status: Mapping[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    size = sum(name_formats.length(text) for pair in (status.get("attachmentMetadata") or {}).items() for text in pair)
    if size > _METADATA_SIZE:
        errors.append(too_long(_STATUS.child("attachmentMetadata"), _METADATA_SIZE))
    for field in ("attachError", "detachError"):
        errors += _validate_error(status.get(field) or {}, _STATUS.child(field))
    return errors


def _validate_error(error: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if name_formats.length(error.get("message") or "") > _MESSAGE_SIZE:
        errors.append(too_long(path.child("message"), _METADATA_SIZE))  # the limit in the message is Kubernetes', too
    code = error.get("errorCode")
    if code is not None and code < 0:
        errors.append(invalid(path.child("errorCode"), code, name_formats.out_of_range(0, _HIGHEST_CODE)))
    return errors
