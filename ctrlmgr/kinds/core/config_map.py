"""The strategy of ConfigMaps: validates their size and keys, and changes of immutable ConfigMaps.

Source: Kubernetes `pkg/apis/core/validation`, `ValidateConfigMap` and `ValidateConfigMapUpdate`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, too_long
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import each_problem

MAX_DATA_SIZE = 1024 * 1024
"""The maximum total size of the values of a ConfigMap or Secret, in bytes."""

_WHOLE_OBJECT = Path("[]")  # how Go prints a path without a name


class ConfigMapStrategy(Strategy):
    """The strategy of the kind v1 ConfigMap."""

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate that an immutable ConfigMap is unchanged.

        The method also validates the keys and the total size, and that no key is in both `data` and `binaryData`.
        """
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        errors = [] if ctx.old is None else validate_immutability(obj, ctx.old, ("data", "binaryData"))
        for key in data:
            errors += validate_keys((key,), Path("data"))
            if key in binary:
                errors.append(invalid(Path("data").key(key), key, "duplicate of key present in binaryData"))
        errors += validate_keys(binary, Path("binaryData"))
        if sum(map(name_formats.length, data.values())) + sum(map(decoded_length, binary.values())) > MAX_DATA_SIZE:
            errors.append(too_long(_WHOLE_OBJECT, MAX_DATA_SIZE))
        return errors


def validate_keys(data: Iterable[str], path: Path) -> list[FieldError]:
    """Validate the keys of a ConfigMap's or Secret's data."""
    return [error for key in data for error in each_problem(name_formats.config_map_key, key, path.key(key))]


def validate_immutability(new: Unstructured, old: Unstructured, fields: Iterable[str]) -> list[FieldError]:
    """Validate that an object with `immutable: true` keeps this field and its data."""
    if not old.get("immutable"):
        return []
    words = "field is immutable when `immutable` is set"
    errors = [] if new.get("immutable") else [forbidden("immutable", words)]
    return errors + [forbidden(each, words) for each in fields if (new.get(each) or {}) != (old.get(each) or {})]


def decoded_length(encoded: str) -> int:
    """Return the decoded length of a base64 string."""
    return len(encoded) // 4 * 3 - encoded[-2:].count("=")
