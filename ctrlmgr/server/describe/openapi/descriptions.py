"""The descriptions of kinds and fields in the OpenAPI documents, which `kubectl explain` shows.

The bundled structure of kinds contains no descriptions. This module adds a description for each kind, and for the
fields that all kinds have in common. Some descriptions begin with the words of Kubernetes' descriptions, because
scripts and tests search for these words. `words.toml` describes other common fields. The description of a kind links to
the full documentation.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from ctrlmgr.extensions.custom.openapi import TYPE_META

_FIELDS = {
    **{name: node["description"] for name, node in TYPE_META.items()},
    "metadata": "Standard object's metadata: name, namespace, labels, annotations, owners.",
    "spec": "The desired state.",
    "status": "The last observed state.",
    "items": "The objects of the list.",
}
_METADATA = {
    "annotations": "Texts that tools store with the object; selectors do not use them.",
    "creationTimestamp": "CreationTimestamp is a timestamp of the object's creation by the server.",
    "deletionGracePeriodSeconds": "The seconds between the request to delete the object and its removal.",
    "deletionTimestamp": "The time of the object's removal; the server sets it when a client deletes the object.",
    "finalizers": "Names of clean-up tasks; the object is removed when controllers have removed all of them.",
    "generateName": "The prefix of a name that the server generates.",
    "generation": "The number of the desired state; it grows with each change of it.",
    "labels": "Keys and values that selectors use to select the object.",
    "managedFields": "The owners of the object's fields, and the version in which each set them.",
    "name": "The object's name, which is unique among objects of its kind and namespace.",
    "namespace": "The namespace of the object; objects of cluster-scoped kinds have none.",
    "ownerReferences": "The owners of the object; it is deleted when all of them are deleted.",
    "resourceVersion": "The object's version, which each write changes; the server refuses writes with an old one.",
    "selfLink": "Deprecated: it is always empty.",
    "uid": "The unique identifier of the object, which no earlier or later object of its name has.",
}
_KIND = "x-kubernetes-group-version-kind"
_PREFIX: Final = "io.k8s.api."
_ELSEWHERE: Final = "All fields are documented at https://kubernetes.io/docs/reference/kubernetes-api/."
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def described(name: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI v2 definition, to which the available descriptions are added."""
    kinds = definition.get(_KIND, ())
    if name == _OBJECT_META:
        return _with_words({**definition}, _METADATA)
    words = _words().get(name.removeprefix(_PREFIX), {})
    if len(kinds) != 1:
        return _with_words(dict(definition), words) if words else dict(definition)
    return _with_words({"description": _sentence(**kinds[0]), **definition}, {**_FIELDS, **words})


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text("utf-8"))


def _with_words(definition: dict[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    fields = {
        name: {"description": words[name], **field} if name in words else field
        for name, field in definition.get("properties", {}).items()
    }
    return {**definition, "properties": fields}


def _sentence(group: str, version: str, kind: str) -> str:
    api_version = f"{group}/{version}" if group else version
    return f"{kind} of API version {api_version}, with the fields it has in Kubernetes. {_ELSEWHERE}"
