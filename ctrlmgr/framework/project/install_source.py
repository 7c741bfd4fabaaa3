"""Returns a requirement with which pip and uv install ctrlmgr from the place of this installation.

Guarantees: the requirement contains the folder, wheel or commit that the installer has recorded (PEP 610). If ctrlmgr
was installed from a package index, the requirement contains no location.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

NAME: Final = "ctrlmgr"
_CHECKOUT: Final = Path(__file__).parents[3]


def requirement() -> str:
    """Return a requirement such as `ctrlmgr @ file:///src/ctrlmgr`, for `dependencies` in pyproject.toml."""
    try:
        recorded = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:  # The program runs from a checkout that is not installed.
        return f"{NAME} @ {_CHECKOUT.as_uri()}"
    return requirement_of(json.loads(recorded)) if recorded else NAME


def requirement_of(direct_url: Mapping[str, Any]) -> str:
    """Return the requirement that the `direct_url.json` of an installed package describes."""
    url = direct_url["url"]
    if version_control := direct_url.get("vcs_info"):
        url = f"{version_control['vcs']}+{url}@{version_control['commit_id']}"
    if folder := direct_url.get("subdirectory"):
        url = f"{url}#subdirectory={folder}"
    return f"{NAME} @ {url}"
