"""The descriptions of kinds and fields in the OpenAPI documents, for `kubectl explain`.

The bundled structure has no descriptions. This module adds one for each kind, and for the fields that all kinds share.
Some begin as Kubernetes' own, because scripts and tests search for these words. `words.toml` describes the most common
fields of other kinds. The description of a kind links to the full documentation.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

_FIELDS = {
    "apiVersion": "APIVersion defines the group and the version that the object is written in.",
    "kind": "Kind is the word for what sort of thing the rest of the object describes.",
    "metadata": "Standard object's metadata: name, namespace, labels, annotations, owners.",
    "spec": "What is desired.",
    "status": "What was observed last.",
    "items": "The objects of the list.",
}
_METADATA = {
    "annotations": "Texts that tools keep with the object; nothing is selected by them.",
    "creationTimestamp": "CreationTimestamp is a timestamp of when the server stored the object for the first time.",
    "deletionGracePeriodSeconds": "The seconds that the object has before it is removed, once it is being deleted.",
    "deletionTimestamp": "When the object is to be removed; set when it is deleted.",
    "finalizers": "What still has to be done before the object may go; who has done it takes its word out of the list.",
    "generateName": "What a name begins with that the server is to make up.",
    "generation": "Counts the changes of what is desired of the object.",
    "labels": "Short texts by which objects are grouped and selected.",
    "managedFields": "Who has set which fields, and in which version.",
    "name": "The object goes by this name, which no other of its kind has in its namespace.",
    "namespace": "The part of the cluster that the object is in; some kinds are in none.",
    "ownerReferences": "The objects that this one belongs to: it is removed when all of them have gone.",
    "resourceVersion": "Changes whenever the object does; a write that names an old one is refused.",
    "selfLink": "Deprecated: it is always empty.",
    "uid": "Tells the object from others of its name, before it and after it.",
}
_KIND = "x-kubernetes-group-version-kind"
_PREFIX: Final = "io.k8s.api."
_ELSEWHERE: Final = "Every field is told of at https://kubernetes.io/docs/reference/kubernetes-api/."
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def described(name: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI v2 definition with descriptions added where there are any."""
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
