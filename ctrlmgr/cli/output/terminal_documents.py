"""Formats JSON and YAML documents so that they are safe to print on a terminal.

Guarantees: control characters, and characters that change the text's direction, are printed as escapes of JSON or YAML.
Therefore a program that parses the document reads the stored value, and no value can control the terminal.
"""

from __future__ import annotations

import re
from typing import Any

from ctrlmgr.logging import CONTROL


def json_text(text: str) -> str:
    """Return a JSON document with control characters escaped.

    Outside of strings, line ends are the only control characters in a JSON document.
    """
    return CONTROL.sub(_json_escape, text)


def yaml_text(document: Any) -> str:
    """Return a document of plain JSON values as YAML."""
    import yaml

    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=4096)
    if CONTROL.search(text.replace("\n", "")) is None:
        return text
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=False, width=4096)


def _json_escape(found: re.Match[str]) -> str:
    return found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}"
