"""Hashes of recorded pod templates, which Kubernetes 1.36.2 computed directly after decoding and defaulting.

The recorded templates had not passed the API server's conversion, which copies `serviceAccountName` to
`serviceAccount`, and had not been stored, which writes quantities in canonical form. `recorded_hash` reconstructs the
template as Go held it in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.controllers.workloads.go_print import print_value
from ctrlmgr.controllers.workloads.go_quantity import Decimal, GoQuantity, read, rounded_up
from ctrlmgr.controllers.workloads.hashes import fnv1a_32, safe_encoded
from ctrlmgr.kinds.core.pod.defaults import default_template
from ctrlmgr.schema.definitions import Definitions

_LISTS = ("limits", "requests", "overhead")
_AMOUNTS = ("sizeLimit", "divisor")
_MILLI = 3


def printed_hash(printed: str) -> str:
    """Return the hash of a template in the form in which Go prints it."""
    return safe_encoded(str(fnv1a_32(printed.encode())))


def recorded_hash(template: dict[str, Any]) -> str:
    """Return the hash of a recorded template."""
    return printed_hash(print_value("v1.PodTemplateSpec", _defaulted(template)))


def _defaulted(template: dict[str, Any]) -> dict[str, Any]:
    """Return a template as Go has it in memory after defaulting, with quantities in Go's form."""
    codec = Definitions.builtin().codec("PodTemplate", "v1", "io.k8s.api.core.v1.PodTemplate")
    made: dict[str, Any] = codec.read({"template": template}).fields["template"]
    default_template(made)
    if "serviceAccount" not in template["spec"]:
        made["spec"].pop("serviceAccount", None)
    _restore_amounts(made, template)
    return made


def _restore_amounts(made: Any, written: Any) -> None:
    if isinstance(made, list) and isinstance(written, list):
        for one, other in zip(made, written, strict=True):
            _restore_amounts(one, other)
    if isinstance(made, dict) and isinstance(written, Mapping):
        for field in made.keys() & written.keys():
            if field in _LISTS:
                made[field] = {name: _in_thousandths(read(text)) for name, text in written[field].items()}
            elif field in _AMOUNTS:
                made[field] = read(written[field])
            else:
                _restore_amounts(made[field], written[field])


def _in_thousandths(amount: GoQuantity) -> GoQuantity:
    """Return the quantity to which Go's `RoundUp` rounds a quantity in a ResourceList."""
    if amount.decimal is not None:
        return amount._replace(decimal=rounded_up(amount.decimal, _MILLI))
    if amount.scale >= -_MILLI:
        return amount
    return amount._replace(value=rounded_up(Decimal(amount.value, -amount.scale), _MILLI).unscaled, scale=-3, text="")
