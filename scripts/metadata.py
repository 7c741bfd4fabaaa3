"""Adds metadata to a build of ctrlmgr that is known only during the build: the URLs of its source and of its pages.

Guarantees: the URLs are derived from the checkout's remote `origin` if that is on the web; they are never guessed.
Links to files in the README lead to these URLs. Without URLs, the links name the pages that the package contains in
`ctrlmgr/docs`.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_API = "https://kubernetes.io/docs/reference/kubernetes-api/"
_HERE = "Pages that are named here are in the package, below `ctrlmgr/`: `ctrlmgr version` says where that is.\n\n"


class CustomMetadataHook(MetadataHookInterface):
    """Sets the metadata fields `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Do it."""
        source = origin(Path(self.root))
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme(text, source)}
        metadata["urls"] = urls(source)


def origin(root: Path) -> str:
    """Return the URL of the repository for a browser; empty if it is not on the web, or if there is no git."""
    command = ["git", "-C", str(root), "config", "--get", "remote.origin.url"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
    told = re.sub(r"^(?:ssh://)?git@([\w.-]+)[:/]", r"https://\1/", told)
    return re.sub(r"//[^/@]*@", "//", told).removesuffix(".git") if told.startswith("https://") else ""


def urls(source: str) -> dict[str, str]:
    """Return the project's URLs, by their labels."""
    if not source:
        return {"API reference": _API}
    pages = f"{source}/blob/main"
    return {
        "Homepage": source,
        "Documentation": f"{pages}/docs/index.md",
        "Changelog": f"{pages}/CHANGELOG.md",
        "Issues": f"{source}/issues",
        "API reference": _API,
    }


def readme(text: str, source: str) -> str:
    """Return the README with links that also work outside of the repository."""
    if source:
        return re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({source}/blob/main/\1)", text)
    text = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]+\)\n+", "", text, flags=re.MULTILINE)
    head, _, rest = re.sub(r"\[([^\]]+)\]\((?!https?:|#)([^)]+)\)", _named, text).partition("\n\n")
    return f"{head}\n\n{_HERE}{rest}"


def _named(link: re.Match[str]) -> str:
    return link[1] if link[1] == link[2] else f"{link[1]} ({link[2]})"
