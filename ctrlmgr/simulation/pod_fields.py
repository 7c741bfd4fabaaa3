"""Reads the fields of a pod that containers can get as environment variables or as files (`downwardAPI`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def field_of(pod: Mapping[str, Any], path: str) -> str:
    """Return the field at a path such as `metadata.labels['app']`; empty if the pod does not have the field."""
    meta, status = pod["metadata"], pod.get("status") or {}
    simple = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta.get("namespace", ""),
        "metadata.uid": meta.get("uid", ""),
        "spec.nodeName": pod["spec"].get("nodeName", ""),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
        "status.podIP": status.get("podIP", ""),
        "status.hostIP": status.get("hostIP", ""),
    }
    for kind in ("labels", "annotations"):
        prefix = f"metadata.{kind}['"
        if path.startswith(prefix):
            return str((meta.get(kind) or {}).get(path[len(prefix) : -2], ""))
    return str(simple.get(path, ""))


def files_of(pod: Mapping[str, Any], volume: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the path and content of each file of a volume that contains a field of the pod."""
    sources = (volume, *((volume.get("projected") or {}).get("sources") or ()))
    for source in sources:
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            if path := (item.get("fieldRef") or {}).get("fieldPath"):
                yield item["path"], field_of(pod, path)
