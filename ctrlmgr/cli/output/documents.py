"""Documents for machines, JSON and YAML, that may be looked at on a terminal.

Guarantees: control characters, and those that turn the direction of text around, are written as the format's own
escapes: a program reads what was stored, and a terminal is not driven by it.
"""

from __future__ import annotations

import re
from typing import Any

from ctrlmgr.logging import CONTROL


def json_text(text: str) -> str:
    """Return a document of JSON with such characters escaped; outside of texts JSON has none but line ends."""
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
