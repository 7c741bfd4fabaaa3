"""JSON patch (RFC 6902) as evanphx/json-patch v4 and the apiserver do it.

Guarantees: the object given stays as it is. What an operation changes is copied once per patch, however many
operations change it, so a patch of 10,000 operations costs what they do and not 10,000 copies of a list.

Where Go's library departs from the RFC it is followed: negative indices count from the end, `replace` sets a field
that is not there, `copy` of one makes it null, and what stands before the first slash of a path is not looked at.
Source: apiserver `pkg/endpoints/handlers/patch.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.patch.go_value import json_type
from ctrlmgr.errors import ApiError, BadRequest, Invalid, RequestEntityTooLarge, StatusDetails

MAX_OPERATIONS: Final = 10_000
"""How many operations one patch may have (`maxJSONPatchOperations`)."""
MAX_COPIED: Final = 3 * 1024 * 1024
"""How many bytes of JSON the `copy` operations of one patch may add up to (`JSONPatchMaxCopyBytes`)."""
TEST_FAILED: Final = "test failed"
"""What `problem_of` calls a patch whose test fails."""
REJECTED: Final = "the server rejected our request due to an error in our request"

_FIELDS = ("op", "path", "from", "value")
_INDEX = re.compile(r"[+-]?[0-9]{1,18}")


class _DoesNotApply(Exception):
    """Why an operation failed; callers are told only that one did, but those of policies."""

    def __init__(self, reason: str) -> None:
        """Say why; of which operation is known later."""
        super().__init__(reason)
        self.operation: Unstructured = {}


def problem_of(error: ApiError) -> str:
    """Return why a patch was refused, in evanphx/json-patch's words; TEST_FAILED where a test failed."""
    reason = error.__cause__
    if not isinstance(reason, _DoesNotApply):
        return str(error)
    name, path, text = reason.operation.get("op"), reason.operation.get("path"), str(reason)
    if text.endswith("test failed"):
        return TEST_FAILED
    if text.startswith("doc is missing"):
        quoted = f'"{path}"' if name in ("add", "remove") else f"{path}"
        return f"{name} operation does not apply: doc is missing path: {quoted}: missing value"
    if text.startswith("Unable to remove nonexistent"):
        return f"error in {name} for path: '{path}': {text}: missing value"
    if text.startswith("Unable to access"):
        return f"error in {name} for path: '{path}': {text}: invalid index referenced"
    return text


def check_json_patch(operations: Any) -> tuple[str, ...]:
    """Check a patch's form as field validation does, and return what is superfluous in it.

    This is for `fieldValidation` Warn and Strict; Ignore leaves it out. Raises `BadRequest` where a field has the wrong
    type; `json patch unknown field "[0].foo"` and the like are returned, for a warning or a refusal.
    """
    _check_types(operations, "error decoding patch: ", "[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
    problems = []
    for index, operation in enumerate(operations or ()):
        for name, value in (operation or {}).items():
            if name not in _FIELDS:
                problems.append(f'json patch unknown field "[{index}].{name}"')
            elif name != "value" and not isinstance(value, str | None):
                where = f"Go struct field jsonPatchOp.{name} of type string"
                raise BadRequest(f"error decoding patch: json: cannot unmarshal {json_type(value)} into {where}")
    return tuple(problems)


def _check_types(operations: Any, prefix: str, whole: str, each: str) -> None:
    if not isinstance(operations, list | None):
        raise BadRequest(f"{prefix}json: cannot unmarshal {json_type(operations)} into Go value of type {whole}")
    for operation in operations or ():
        if not isinstance(operation, dict | None):
            raise BadRequest(f"{prefix}json: cannot unmarshal {json_type(operation)} into Go value of type {each}")


def json_patch(document: Unstructured, operations: Any) -> Unstructured:
    """Return `document` changed by a decoded JSON patch.

    Raises `BadRequest` for what is no list of objects, `RequestEntityTooLarge` for more than `MAX_OPERATIONS` of them
    and `Invalid` if one of them does not apply, a failing `test` included; its message never says which.
    """
    _check_types(operations, "", "jsonpatch.Patch", "jsonpatch.Operation")
    if operations and len(operations) > MAX_OPERATIONS:
        raise RequestEntityTooLarge(
            "Request entity too large: The allowed maximum operations in a JSON patch is"
            f" {MAX_OPERATIONS}, got {len(operations)}"
        )
    patching = _Patching(document)
    try:
        for operation in operations or ():
            _run(patching, operation or {})
    except _DoesNotApply as reason:
        raise Invalid(REJECTED, details=StatusDetails()) from reason
    return patching.root  # type: ignore[no-any-return]  # a list, if a patch made it one, is the codec's to refuse


def _run(patching: _Patching, operation: Unstructured) -> None:
    try:
        patching.run(operation)
    except _DoesNotApply as reason:
        reason.operation = operation
        raise


class _Patching:
    """A document under change. What has been copied is kept by identity, so that it is copied once."""

    def __init__(self, document: Any) -> None:
        self.root = document
        self._copied: dict[int, Any] = {}
        self._bytes = 0

    def run(self, operation: Unstructured) -> None:
        kind = operation.get("op")
        run = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if run is None:
            raise _DoesNotApply(f"Unexpected kind: {kind}")
        run(self, operation)

    def _add(self, operation: Unstructured) -> None:
        self._put(_pointer(operation, "path"), operation.get("value"))

    def _remove(self, operation: Unstructured) -> None:
        container, key = self._writable(_pointer(operation, "path"))
        _remove(container, key)

    def _replace(self, operation: Unstructured) -> None:
        path, value = _pointer(operation, "path"), operation.get("value")
        if path == "":
            if not isinstance(value, dict | list):
                raise _DoesNotApply("replace operation value must be object or array")
            self.root = value
            return
        container, key = self._writable(path)
        if isinstance(container, dict):
            container[key] = value
        else:
            container[_index(key, len(container))] = value

    def _move(self, operation: Unstructured) -> None:
        container, key = self._writable(_pointer(operation, "from"))
        value = _get(container, key)
        _remove(container, key)
        self._put(_pointer(operation, "path"), value)

    def _copy(self, operation: Unstructured) -> None:
        value = _get(*self._readable(_pointer(operation, "from")))
        path = _pointer(operation, "path")
        encoded = msgspec.json.encode(value)
        self._bytes += len(encoded)
        if self._bytes > MAX_COPIED:
            raise _DoesNotApply(f"the accumulated size increase of copy is {self._bytes}, exceeding {MAX_COPIED}")
        # Decoded again, so that it shares nothing that later operations change.
        self._put(path, msgspec.json.decode(encoded))

    def _test(self, operation: Unstructured) -> None:
        path = _pointer(operation, "path")
        found = self.root if path == "" else _get(*self._readable(path))
        if not same_json(found, operation.get("value")):
            raise _DoesNotApply(f"testing value {path} failed: test failed")

    def _put(self, path: str, value: Any) -> None:
        container, key = self._writable(path)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container) + 1), value)

    def _readable(self, path: str) -> tuple[Any, str]:
        *parents, key = _tokens(path)
        container = self.root
        for token in parents:
            container = _container(_get(container, token), path)
        return container, key

    def _writable(self, path: str) -> tuple[Any, str]:
        *parents, key = _tokens(path)
        container = self.root = self._own(self.root)
        for token in parents:
            child = self._own(_container(_get(container, token), path))
            container[token if isinstance(container, dict) else _index(token, len(container))] = child
            container = child
        return container, key

    def _own(self, container: Any) -> Any:
        if id(container) in self._copied:
            return container
        copied = container.copy()
        self._copied[id(copied)] = copied
        return copied


# Not in the object itself: that would be a circle, with the document in it.
_OPERATIONS: Mapping[Any, Callable[[_Patching, Unstructured], None]] = {
    "add": _Patching._add,
    "remove": _Patching._remove,
    "replace": _Patching._replace,
    "move": _Patching._move,
    "copy": _Patching._copy,
    "test": _Patching._test,
}


def _pointer(operation: Unstructured, name: str) -> str:
    path = operation.get(name)
    if not isinstance(path, str):
        raise _DoesNotApply(f"operation missing {name} field")
    return path


def _tokens(path: str) -> list[str]:
    """Return what leads to a value: the names of its containers, and its own in the last."""
    before, *tokens = path.split("/")
    if not tokens:
        raise _DoesNotApply(f"doc is missing path: {before}")
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens]


def _container(value: Any, path: str) -> Any:
    if not isinstance(value, dict | list):
        raise _DoesNotApply(f"doc is missing path: {path}")
    return value


def _index(key: str, length: int) -> int:
    index = int(key) if _INDEX.fullmatch(key) else length
    if not -length <= index < length:
        raise _DoesNotApply(f"Unable to access invalid index: {key}")
    return index % length


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container))]


def _remove(container: Any, key: str) -> None:
    if isinstance(container, list):
        del container[_index(key, len(container))]
    elif key in container:
        del container[key]
    else:
        raise _DoesNotApply(f"Unable to remove nonexistent key: {key}")


def same_json(one: Any, other: Any) -> bool:
    """Whether two decoded values are the same JSON: unlike with `==`, true is not 1, and 1.0 is not 1."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
