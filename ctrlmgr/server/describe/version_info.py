"""Creates the response at `/version`: the version of Kubernetes' API, with ctrlmgr's version as build metadata.

Clients compare semantic versions without the build metadata. kubectl warns about a difference of more than one minor
version, and client libraries and test suites select features by version. Therefore the version number in the response
is that of Kubernetes.
"""

from __future__ import annotations

import platform
from typing import Final

import msgspec

from ctrlmgr import __version__
from ctrlmgr.server.describe.document import JSON, Document, document

KUBERNETES: Final = (1, 36, 2)
"""The Kubernetes release whose API the server implements."""

_OLDEST_COMPATIBLE: Final = (1, 35)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def git_version() -> str:
    """Return `v1.36.2+ctrlmgr.0.1.0`."""
    return f"v{'.'.join(map(str, KUBERNETES))}+ctrlmgr.{__version__}"


def version_info() -> dict[str, str]:
    """Return apimachinery's `version.Info`.

    The fields that describe a Go build contain values of the Python interpreter, or are empty.
    """
    major, minor, _ = map(str, KUBERNETES)
    machine = platform.machine()
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": str(_OLDEST_COMPATIBLE[0]),
        "minCompatibilityMinor": str(_OLDEST_COMPATIBLE[1]),
        "gitVersion": git_version(),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{_ARCHITECTURES.get(machine, machine)}",
    }


def version_document() -> Document:
    """Return the response at `/version`, indented as apiserver's `WriteRawJSON` does for plain values."""
    return document(JSON, msgspec.json.format(msgspec.json.encode(version_info()), indent=2))
