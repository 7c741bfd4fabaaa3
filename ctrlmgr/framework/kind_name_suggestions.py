"""Refuses names of kinds that cannot exist in any cluster, and suggests a similar kind.

Guarantees: the kinds of Kubernetes' own groups are the kinds of Kubernetes 1.36, read from the discovery documents in
this package. A kind of a group that a CustomResourceDefinition could define is never refused.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from ctrlmgr.schema import published_schema

_ALIKE = 0.7
"""The minimum similarity of a suggested name to the given name, from 0 to 1, as in `difflib`."""


def check_spelling(group: str, kind: str, name: str) -> None:
    """Raise TypeError for a kind that Kubernetes does not have, if no CustomResourceDefinition can add it.

    The group of a CustomResourceDefinition must contain a dot. In a built-in group with a dot, such as
    `networking.k8s.io`, a kind is refused only if its name is similar to a built-in kind. Kinds with other names are
    allowed, because a later version of Kubernetes or an add-on may define them.
    """
    known = _builtin().get(group)
    if known is None:
        if "." not in group:
            raise TypeError(f"{name}: Kubernetes has no group {group!r}{suggested(group, kind)}")
        return
    if kind in known:
        return
    similar = get_close_matches(kind, known, cutoff=_ALIKE)
    if similar or "." not in group:
        where = f"the group {group}" if group else "the core group"
        raise TypeError(f"{name}: {where} has no kind {kind!r}{suggested(group, kind)}")


def suggested(group: str, kind: str) -> str:
    """Return a question that suggests the kind with the most similar name; empty if no name is similar."""
    kinds = {each: (other, version) for other, found in _builtin().items() for each, version in found.items()}
    own = _builtin().get(group, {})
    if similar := get_close_matches(kind, own, n=1, cutoff=_ALIKE):
        return f"; did you mean {_label(group, own[similar[0]], similar[0])}?"
    if similar := get_close_matches(kind, kinds, n=1, cutoff=_ALIKE):
        return f"; did you mean {_label(*kinds[similar[0]], similar[0])}?"
    return ""


def _label(group: str, version: str, kind: str) -> str:
    return f"{group}/{version}/{kind}" if group else f"{version}/{kind}"


@cache
def _builtin() -> dict[str, dict[str, str]]:
    """Return the kinds of each built-in API group in the group's preferred version."""
    documents = published_schema.discovery()
    found = {"": _kinds(documents["/api/v1"], "v1")}
    for group in documents["/apis"]["groups"]:
        kinds = found.setdefault(group["name"], {})
        for version in (each["version"] for each in group["versions"]):
            kinds.update(_kinds(documents[f"/apis/{group['name']}/{version}"], version) | kinds)
    return found


def _kinds(document: dict[str, list[dict[str, str]]], version: str) -> dict[str, str]:
    return {each["kind"]: version for each in document["resources"]}
