"""Warns if several keys or sources of one volume define files with overlapping paths.

Source: Kubernetes `pkg/api/pod/warnings.go`, `warningsForOverlappingVirtualPaths`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ctrlmgr.golang.go_text import quote


class _File(NamedTuple):
    path: str
    source: str = ""
    """The volume source that defines the file, if the volume has several sources."""

    @property
    def shown(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def overlapping_paths(volume: Mapping[str, Any]) -> Iterator[str]:
    """Yield the warnings for one volume of a pod."""
    name = quote(volume.get("name") or "")
    for field, kind, naming in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        if (source := volume.get(field)) is not None:
            described = f"{kind} {quote(source.get(naming) or '')}"
            yield from _overlaps(name, described, _items(source))
    if (source := volume.get("downwardAPI")) is not None:
        yield from _overlaps(name, "DownwardAPI", _items(source))
    if (source := volume.get("projected")) is not None:
        sources = source.get("sources") or ()
        yield from (f"volume {name} (Projected) has no sources provided" for each in sources if not _given(each))
        files = (file for each in sources for file in _projected(each))
        yield from _overlaps(name, "Projected", files)


def _given(source: Mapping[str, Any]) -> bool:
    return any(value is not None for value in source.values())


def _overlaps(volume: str, described: str, files: Iterable[_File]) -> Iterator[str]:
    earlier: dict[str, list[tuple[int, _File]]] = {}
    below: dict[str, list[tuple[int, _File]]] = {}
    for index, each in enumerate(files):
        file = each._replace(path=each.path.rstrip("/"))
        if not file.path:
            continue
        *above, own = _ancestors(file.path)
        found = [other for path in (*above, own) for other in earlier.get(path, ())] + below.get(own, [])
        for _, other in sorted(found):
            yield f"volume {volume} ({described}): overlapping paths: {file.shown} with {other.shown}"
        earlier.setdefault(own, []).append((index, file))
        for path in above:
            below.setdefault(path, []).append((index, file))


def _ancestors(path: str) -> list[str]:
    """Return the path and its parent paths: `a`, `a/b` and `a/b/c` for the path `a/b/c`."""
    parts = path.split("/")
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _items(source: Mapping[str, Any], described: str = "") -> list[_File]:
    return [_File(each.get("path") or "", described) for each in source.get("items") or ()]


def _projected(source: Mapping[str, Any]) -> list[_File]:
    """Return the files of one projection; if it has several sources, return the files of the first source."""
    for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if (source.get(field) or {}).get("items"):
            return _items(source[field], f"{kind} {quote(source[field].get('name') or '')}")
    if (source.get("downwardAPI") or {}).get("items"):
        return _items(source["downwardAPI"], "DownwardAPI")
    if (token := source.get("serviceAccountToken")) is not None:
        return [_File(token.get("path") or "", "ServiceAccountToken")]
    if (bundle := source.get("clusterTrustBundle")) is not None:
        name = bundle.get("name") if bundle.get("name") is not None else bundle.get("signerName")
        return [_File(bundle.get("path") or "", f"ClusterTrustBundle {quote(name or '')}")]
    certificate = source.get("podCertificate") or {}
    return [
        _File(certificate[field], f"PodCertificate {what}")
        for field, what in (
            ("certificateChainPath", "chain"),
            ("keyPath", "key"),
            ("credentialBundlePath", "credential bundle"),
        )
        if certificate.get(field)
    ]
