"""Applies strategic merge patches: the schema determines which lists are merged, and by which key.

Guarantees: the functions change neither the object nor the patch. Lists with the patch strategy `merge` are merged by
their merge key, or as sets if they have no merge key; all other lists are replaced. The directives `$patch` (merge,
replace, delete), `$retainKeys`, `$setElementOrder/<list>` and `$deleteFromPrimitiveList/<list>` work as in Kubernetes.

Malformed directives raise `BadRequest`. Errors that Kubernetes returns without a status (a missing merge key, a wrong
type, an unknown directive or field) raise `UnknownError` with Kubernetes' message. Source: apimachinery
`pkg/util/strategicpatch/patch.go`; the module `element_order` merges and orders lists.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.patch import element_order
from ctrlmgr.engine.patch.element_order import (
    DELETE,
    DIRECTIVE,
    MERGE,
    REPLACE,
    Items,
    element_type,
    missing_merge_key,
    wrong_type,
)
from ctrlmgr.engine.patch.go_value import json_type, plain
from ctrlmgr.errors import BadRequest, UnknownError
from ctrlmgr.schema.schema import Schema

RETAIN_KEYS = "$retainKeys"
SET_ELEMENT_ORDER = "$setElementOrder"
DELETE_FROM_PRIMITIVE_LIST = "$deleteFromPrimitiveList"

_BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
_BAD_PRIMITIVE_LIST = "invalid patch format of primitive list"
_BAD_ELEMENT_ORDER = "invalid patch format of setElementOrder list"


def strategic_merge_patch(document: Unstructured, patch: Any, schema: Schema) -> Unstructured:
    """Apply a decoded strategic merge patch to `document`, whose structure is `schema`, and return the result.

    Raises `BadRequest` if the patch is not an object or has malformed directives. Raises `Invalid` if a list contains
    lists, and `UnknownError` for errors to which Kubernetes responds with a plain 500.
    """
    if not isinstance(patch, dict | None):
        raise BadRequest(f"json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}")
    return _merge_map(document, patch or {}, schema)


def _merge_map(original: Unstructured, patch: Unstructured, schema: Schema) -> Unstructured:
    if DIRECTIVE in patch:
        return _directed(patch[DIRECTIVE], patch)
    result, rest = dict(original), dict(patch)
    if RETAIN_KEYS in rest:
        _retain_keys(result, rest)
    for key in patch:
        if key.startswith(SET_ELEMENT_ORDER):
            _merge_in_order(result, rest, key, schema)
    for key, value in rest.items():
        if key.startswith(DELETE_FROM_PRIMITIVE_LIST):
            _delete_from_list(result, key, value, schema)
        else:
            _merge_field(result, key, value, schema)
    return result


def _directed(directive: Any, patch: Unstructured) -> Unstructured:
    if directive == REPLACE:
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == DELETE:
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: Unstructured) -> UnknownError:
    return UnknownError(f"unknown patch type: {plain(directive)} in map: {plain(patch)}")


def _retain_keys(result: Unstructured, rest: Unstructured) -> None:
    """Remove fields that `$retainKeys` does not list; raise an error if the patch sets a field that is not listed."""
    retained = rest.pop(RETAIN_KEYS)
    if not isinstance(retained, list):
        raise BadRequest(_BAD_RETAIN_KEYS)
    names = {each for each in retained if isinstance(each, str)}
    for key, value in rest.items():
        parallel = key.startswith((DELETE_FROM_PRIMITIVE_LIST, SET_ELEMENT_ORDER))
        if value is not None and not parallel and key not in names:
            raise BadRequest(_BAD_RETAIN_KEYS)
    for key in [key for key in result if key not in names]:
        del result[key]


def _merge_field(result: Unstructured, key: str, value: Any, schema: Schema) -> None:
    original = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(original, dict) and isinstance(value, dict):
        result[key] = _merge_maps(original, value, _field(schema, key))
    elif isinstance(original, list) and isinstance(value, list):
        result[key] = _merge_lists(original, value, _list_field(schema, key))
    elif (bare := _bare(value)) is not _DROPPED:
        result[key] = bare
    else:
        result.pop(key, None)


def _merge_maps(original: Unstructured, patch: Unstructured, field: Schema) -> Unstructured:
    if _strategy(field) == REPLACE:
        return patch
    return _merge_map(original, patch, field)


def _merge_lists(original: Items, patch: Items, field: Schema) -> Items:
    if _strategy(field) == MERGE:
        return _merge_items(original, patch, field)
    return patch


def _delete_from_list(result: Unstructured, key: str, value: Any, schema: Schema) -> None:
    name = _list_name(key, DELETE_FROM_PRIMITIVE_LIST, _BAD_PRIMITIVE_LIST)
    original = result.get(name)
    if value is None:
        result.pop(name, None)
    elif isinstance(original, list) and isinstance(value, list):
        field = _list_field(schema, name)
        if (original or value) and element_type(original, value) is not dict:
            deleted = {element_order.identity(each) for each in value}
            result[name] = [each for each in original if element_order.identity(each) not in deleted]
        else:
            result[name] = _merge_items(original, value, field)


def _list_name(key: str, prefix: str, malformed: str) -> str:
    directive, slash, name = key.partition("/")
    if directive != prefix or not slash:
        raise BadRequest(malformed)
    return name


def _merge_items(original: Items, patch: Items, field: Schema) -> Items:
    """Merge two lists; elements that the patch names are in the patch's order, others keep their positions."""
    if not original and not patch:
        return original
    merge_key = field.patch_merge_key
    if element_type(original, patch) is not dict:
        merged = list({element_order.identity(each): each for each in [*original, *patch]}.values())
        return element_order.arrange(merged, patch, original, "")
    items = _items(field)
    if not merge_key:
        raise UnknownError(f"cannot merge lists without merge key for {'struct' if items.is_struct else 'map'}")
    original, patch = _apply_special_elements(original, patch, merge_key)
    merged = _merge_elements(original, patch, merge_key, items)
    return element_order.arrange(merged, patch, merged[: len(original)], merge_key)


def _apply_special_elements(original: Items, patch: Items, merge_key: str) -> tuple[Items, Items]:
    """Apply the list elements that contain only `$patch` directives, and return both lists without these elements."""
    ordinary, replaced, deleted = [], False, set()
    for element in patch:
        directive = element.get(DIRECTIVE)
        if DIRECTIVE not in element:
            ordinary.append(element)
        elif directive == DELETE:
            deleted.add(_deleted(element, merge_key))
        elif directive == REPLACE:
            replaced = True
        elif directive == MERGE:
            raise UnknownError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, element)
    if replaced:
        return ordinary, []
    kept = (
        [each for each in original if merge_key not in each or element_order.identity(each[merge_key]) not in deleted]
        if deleted
        else original
    )
    return kept, ordinary


def _deleted(element: Unstructured, merge_key: str) -> Hashable:
    if merge_key not in element:
        raise missing_merge_key(element, merge_key)
    return element_order.identity(element[merge_key])


def _merge_elements(original: Items, patch: Items, merge_key: str, items: Schema) -> Items:
    merged = list(original)
    places = element_order.places(merged, merge_key)
    for element in patch:
        if merge_key not in element:
            raise missing_merge_key(element, merge_key)
        index = places.setdefault(element_order.identity(element[merge_key]), len(merged))
        if index == len(merged):
            merged.append(element)
        else:
            merged[index] = _merge_map(merged[index], element, items)
    return merged


def _merge_in_order(result: Unstructured, rest: Unstructured, key: str, schema: Schema) -> None:
    """Merge a list whose order the patch specifies, and remove the list and its order from `rest`."""
    order = rest.pop(key)
    if not isinstance(order, list):
        raise wrong_type([], order)
    name = _list_name(key, SET_ELEMENT_ORDER, _BAD_ELEMENT_ORDER)
    for fields in (result, rest):
        if not isinstance(fields.get(name, []), list):
            raise wrong_type([], fields[name])
    original, patch = result.get(name), rest.get(name)
    field = _list_field(schema, name)
    element_order.check_order(patch or [], order, field.patch_merge_key)
    if original is None and patch is None:
        return
    merged = _ordered(original, patch, field)
    element_type(original or [], patch or [], required=True)
    result[name] = element_order.arrange(merged, order, original or [], field.patch_merge_key)
    rest.pop(name, None)


def _ordered(original: Items | None, patch: Items | None, field: Schema) -> Items:
    if original is None:
        added: Items = _bare(patch, keep_nulls=True)
        return added
    return original if patch is None else _merge_lists(original, patch, field)


_DROPPED: Any = object()


def _bare(value: Any, *, keep_nulls: bool = False) -> Any:
    """Return a patch's value for a field that did not exist: without null fields and without `$patch` elements."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return _DROPPED
        fields = {key: _bare(each, keep_nulls=keep_nulls) for key, each in value.items()}
        return {key: each for key, each in fields.items() if each is not _DROPPED and (keep_nulls or each is not None)}
    if isinstance(value, list):
        return [bare for each in value if (bare := _bare(each, keep_nulls=keep_nulls)) is not _DROPPED]
    return value


def _strategy(field: Schema) -> str:
    return next((each for each in field.patch_strategy if each != "retainKeys"), "")


def _field(schema: Schema, name: str) -> Schema:
    if schema.kind == "map":
        raise UnknownError("merging an object in json but data type is not struct, instead is: map")
    field = schema.properties.get(name) if schema.is_struct else None
    if field is None:
        struct = schema.definition.rpartition(".")[2]
        raise UnknownError(f'unable to find api field in struct {struct} for the json field "{name}"')
    return field


def _list_field(schema: Schema, name: str) -> Schema:
    field = _field(schema, name)
    if field.items is None:
        raise UnknownError("expected slice or array type, but got: struct")
    return field


def _items(field: Schema) -> Schema:
    assert field.items is not None  # `_list_field` has checked the field
    return field.items
