"""Parses image names, because they determine the default pull policy.

The default pull policy of an image with the tag `latest` is `Always`.

Source: Kubernetes `pkg/util/parsers/parsers.go` and `github.com/distribution/reference`.
"""

from __future__ import annotations

import re

from ctrlmgr.caches.memoized import memoized

_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)"
_DOMAIN = rf"(?:{_HOST}(?:\.{_HOST})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = re.compile(rf"(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*(?::(?P<tag>{_TAG}))?(?P<digest>@{_DIGEST})?")
# The name has at most 255 characters and the tag has at most 128 characters. In an image name, the digest follows the
# tag. Longer texts are not image names.
_LONGEST = 600
_LONGEST_PATH = 255
_DIGEST_LIKE = re.compile("[a-f0-9]{64}")


@memoized(entries=4096, longest=_LONGEST)  # a cache is useful because most pods run the same few images
def pull_policy(image: str) -> str:
    """Return the default pull policy of an image.

    The result is `Always` if the image has the tag `latest`, or has neither a tag nor a digest. For any other image
    name, the pull policy is `IfNotPresent`, also for an invalid name, because validation accepts any image name.
    """
    match = _IMAGE.fullmatch(image) if len(image) <= _LONGEST else None
    if match is None or _DIGEST_LIKE.fullmatch(image) or len(_path(image, match)) > _LONGEST_PATH:
        return "IfNotPresent"
    tag, digest = match["tag"], match["digest"]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _path(image: str, match: re.Match[str]) -> str:
    """Return the path of the repository in an image name, without the registry's domain (`splitDockerDomain`)."""
    name = image[: match.start("tag") - 1 if match["tag"] else len(image) - len(match["digest"] or "")]
    domain, slash, rest = name.partition("/")
    if slash and (any(each in domain for each in ".:") or domain == "localhost" or domain.lower() != domain):
        return rest
    return name if slash else f"library/{name}"
