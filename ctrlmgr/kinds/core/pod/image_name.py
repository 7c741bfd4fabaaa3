"""Reads in an image's name what the pull policy depends on: whether it says `latest`, openly or by saying nothing.

Rules come from Kubernetes' `pkg/util/parsers/parsers.go` and `github.com/distribution/reference`.
"""

from __future__ import annotations

import re

from ctrlmgr.api.remembered import remembered

_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)"
_DOMAIN = rf"(?:{_HOST}(?:\.{_HOST})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = re.compile(rf"(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*(?::(?P<tag>{_TAG}))?(?P<digest>@{_DIGEST})?")
_LONGEST = 600  # a name of 255, a tag of 128 and a digest; what is longer is no image's name


@remembered(entries=4096, longest=_LONGEST)  # most pods run the same few images
def pull_policy(image: str) -> str:
    """Return `Always` for an image whose tag is `latest`, or that has neither tag nor digest, else `IfNotPresent`.

    So is what cannot be read: validation does not mind what an image is called.
    """
    match = _IMAGE.fullmatch(image) if len(image) <= _LONGEST else None
    if match is None:
        return "IfNotPresent"
    tag, digest = match["tag"], match["digest"]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"
