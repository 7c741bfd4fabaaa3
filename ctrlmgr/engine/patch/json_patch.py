"""Applies JSON patches (RFC 6902) as evanphx/json-patch v4 and the apiserver do.

Guarantees: the given object is not changed. Each changed container is copied at most once for each patch, so 10,000
operations do not copy a list 10,000 times.

The Go library differs from the RFC in the following points, and so does this module. Negative indices are counted from
the end of the list. An operation `replace` may set a missing field. An operation `replace` of the whole document by a
scalar has no effect. An operation `copy` of a missing field inserts null. Characters before the first slash of a path
are ignored. Source: apiserver `pkg/endpoints/handlers/patch.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.patch.go_value import json_type
from ctrlmgr.errors import ApiError, BadRequest, Invalid, RequestEntityTooLarge, StatusDetails
from ctrlmgr.golang.go_text import quote

MAX_OPERATIONS: Final = 10_000
"""The maximum number of operations in one patch (`maxJSONPatchOperations`)."""
MAX_COPIED: Final = 3 * 1024 * 1024
"""The maximum total size of `copy` operations in one patch, in bytes of JSON (`JSONPatchMaxCopyBytes`)."""
REJECTED: Final = "the server rejected our request due to an error in our request"

_FIELDS = ("op", "path", "from", "value")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INDEX = re.compile(r"[+-]?[0-9]{1,18}")


class _DoesNotApply(Exception):
    """Raised if an operation of a patch fails.

    The message is that of the Go library. Only the errors of admission webhooks and policies show this message to
    clients.
    """


class _TestFailed(_DoesNotApply):
    """Raised if a `test` operation finds a different value."""

    def __init__(self, path: str) -> None:
        """Create the error for the path that was tested."""
        super().__init__(f"testing value {path} failed: test failed")


class _Missing(_DoesNotApply):
    """Raised if a path or a field is missing."""

    def __init__(self, what: str) -> None:
        """Create the error for the missing part of a document."""
        super().__init__(f"{what}: missing value")


def problem_of(error: ApiError) -> str:
    """Return the reason why a patch was refused, as worded by evanphx/json-patch."""
    reason = error.__cause__
    return str(reason if isinstance(reason, _DoesNotApply) else error)


def is_failed_test(error: ApiError) -> bool:
    """Return whether a patch was refused because one of its tests failed."""
    return isinstance(error.__cause__, _TestFailed)


def check_json_patch(operations: Any) -> tuple[str, ...]:
    """Check the form of a patch as field validation does, and return a problem for each unknown field.

    The function is called if `fieldValidation` is Warn or Strict, but not if it is Ignore. Raises `BadRequest` if a
    field of the patch has the wrong type. Problems such as `json patch unknown field "[0].foo"` are returned, and the
    caller reports them as a warning or an error.
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

    Raises `BadRequest` if the patch is not a list of objects, and `RequestEntityTooLarge` if the patch has more than
    `MAX_OPERATIONS` operations. Raises `Invalid` if an operation fails, including a `test`; the message does not
    contain the failed operation.
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
            patching.run(operation or {})
    except _DoesNotApply as reason:
        raise Invalid(REJECTED, details=StatusDetails()) from reason
    return patching.root  # type: ignore[no-any-return]  # a list, if a patch made it one, is the codec's to refuse


class _Patching:
    """A document to which a patch is being applied.

    Copied containers are tracked by identity, so that each container is copied only once.
    """

    def __init__(self, document: Any) -> None:
        self.root = document
        self._copied: dict[int, Any] = {}
        self._bytes = 0

    def run(self, operation: Unstructured) -> None:
        kind = operation.get("op")
        kind = kind if isinstance(kind, str) else "unknown"
        run = _OPERATIONS.get(kind)
        if run is None:
            raise _DoesNotApply(f"Unexpected kind: {kind}")
        run(self, operation)

    def _add(self, operation: Unstructured) -> None:
        path = _pointer(operation, "path", "add operation failed to decode path", tells=False)
        place = self._writable(path, f'add operation does not apply: doc is missing path: "{path}"')
        with _within(f"error in add for path: '{path}'"):
            _put(*place, operation.get("value"))

    def _remove(self, operation: Unstructured) -> None:
        path = _pointer(operation, "path", "remove operation failed to decode path", tells=False)
        place = self._writable(path, f'remove operation does not apply: doc is missing path: "{path}"')
        with _within(f"error in remove for path: '{path}'"):
            _remove(*place)

    def _replace(self, operation: Unstructured) -> None:
        path = _pointer(operation, "path", "replace operation failed to decode path")
        value = operation.get("value")
        if path == "":
            if isinstance(value, dict | list):  # otherwise the operation does nothing
                self.root = value
            return
        container, key = self._writable(path, f"replace operation does not apply: doc is missing path: {path}")
        if isinstance(container, dict):
            container[key] = value
            return
        try:
            container[_index(key, len(container))] = value
        except _DoesNotApply as reason:
            raise _Missing(f"replace operation does not apply: doc is missing key: {path}") from reason

    def _move(self, operation: Unstructured) -> None:
        source = _pointer(operation, "from", "move operation failed to decode from")
        container, key = self._writable(source, f"move operation does not apply: doc is missing from path: {source}")
        with _within(f"error in move for path: '{key}'"):
            value = _get(container, key)
            _remove(container, key)
        path = _pointer(operation, "path", "move operation failed to decode path")
        place = self._writable(path, f"move operation does not apply: doc is missing destination path: {path}")
        with _within(f"error in move for path: '{path}'"):
            _put(*place, value)

    def _copy(self, operation: Unstructured) -> None:
        source = _pointer(operation, "from", "copy operation failed to decode from")
        found = self._readable(source, f"copy operation does not apply: doc is missing from path: {source}")
        with _within(f"error in copy for from: '{source}'"):
            value = _get(*found)
        path = _pointer(operation, "path", "copy operation failed to decode path", tells=False)
        place = self._writable(path, f"copy operation does not apply: doc is missing destination path: {path}")
        encoded = msgspec.json.encode(value)
        self._bytes += len(encoded)
        if self._bytes > MAX_COPIED:
            words = f"the accumulated size increase of copy is {self._bytes}, exceeding the limit {MAX_COPIED}"
            raise _DoesNotApply(f"Unable to complete the copy, {words}")
        with _within("error while adding value during copy"):
            # The copy is decoded again, so that later operations do not change the source.
            _put(*place, msgspec.json.decode(encoded))

    def _test(self, operation: Unstructured) -> None:
        path = _pointer(operation, "path", "test operation failed to decode path")
        found = self.root
        if path:
            place = self._readable(path, f"test operation does not apply: is missing path: {path}")
            with _within(f"error in test for path: '{path}'"):
                found = _get(*place)
        if not same_json(found, operation.get("value")):
            raise _TestFailed(path)

    def _readable(self, path: str, missing: str) -> tuple[Any, str]:
        """Return the container to which a path leads, and the key in it; `missing` is the error message."""
        *parents, key = _tokens(path, missing)
        container = self.root
        for token in parents:
            container = _child(container, token, missing)
        return container, key

    def _writable(self, path: str, missing: str) -> tuple[Any, str]:
        """Return the result of `_readable`, but as a container that may be changed."""
        *parents, key = _tokens(path, missing)
        container = self.root = self._own(self.root)
        for token in parents:
            child = self._own(_child(container, token, missing))
            container[token if isinstance(container, dict) else _index(token, len(container))] = child
            container = child
        return container, key

    def _own(self, container: Any) -> Any:
        if id(container) in self._copied:
            return container
        copied = container.copy()
        self._copied[id(copied)] = copied
        return copied


# The function is stored outside the object, to avoid a reference cycle that would keep the document in memory.
_OPERATIONS: Mapping[Any, Callable[[_Patching, Unstructured], None]] = {
    "add": _Patching._add,
    "remove": _Patching._remove,
    "replace": _Patching._replace,
    "move": _Patching._move,
    "copy": _Patching._copy,
    "test": _Patching._test,
}


@contextmanager
def _within(words: str) -> Iterator[None]:
    """Return an error whose message has a prefix (`errors.Wrapf`)."""
    try:
        yield
    except _DoesNotApply as reason:
        raise _DoesNotApply(f"{words}: {reason}") from reason


def _pointer(operation: Unstructured, name: str, words: str, *, tells: bool = True) -> str:
    """Return a path that an operation contains.

    If the path is missing, the error message begins with `words`. If `tells` is set, the error message also contains
    the reason.
    """
    path = operation.get(name)
    if isinstance(path, str):
        return path
    if not tells:
        raise _Missing(words)
    if path is None:
        comma = "," if name == "from" else ""
        raise _Missing(f"{words}: operation{comma} missing {name} field")
    raise _DoesNotApply(f"{words}: json: cannot unmarshal {json_type(path)} into Go value of type string")


def _tokens(path: str, missing: str) -> list[str]:
    """Return the unescaped steps of a path."""
    _, *tokens = path.split("/")
    if not tokens:
        raise _Missing(missing)
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens]


def _child(container: Any, token: str, missing: str) -> Any:
    try:
        value = _get(container, token)
    except _DoesNotApply as reason:
        raise _Missing(missing) from reason
    if not isinstance(value, dict | list):
        raise _Missing(missing)
    return value


def _index(key: str, length: int) -> int:
    """Parse an index; a negative index counts from the end."""
    if not _INDEX.fullmatch(key):
        problem = "value out of range" if _INTEGER.fullmatch(key) else "invalid syntax"
        raise _DoesNotApply(f"strconv.Atoi: parsing {quote(key)}: {problem}")
    index = int(key)
    if not -length <= index < length:
        raise _DoesNotApply(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % length


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container))]


def _put(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    elif _INDEX.fullmatch(key):
        container.insert(_index(key, len(container) + 1), value)
    else:
        with _within(f"value was not a proper array index: '{key}'"):
            _index(key, 0)


def _remove(container: Any, key: str) -> None:
    if isinstance(container, list):
        del container[_index(key, len(container))]
    elif key in container:
        del container[key]
    else:
        raise _Missing(f"Unable to remove nonexistent key: {key}")


def same_json(one: Any, other: Any) -> bool:
    """Return whether two decoded values are the same JSON.

    In contrast to Python's `==`, `true` differs from 1, and 1.0 differs from 1.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
