"""Prints our messages that no entry justifies, or writes Kubernetes' messages to `kubernetes.txt`; see
`tests.messages`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tests.messages.comparing import KUBERNETES, kubernetes, literals, shown, unjustified, unknown
from tests.messages.reading import of_go


def main(folders: list[str]) -> int:
    """Run the command; return 1 if there are messages that no entry justifies."""
    if folders:
        head = [each for each in KUBERNETES.read_text(encoding="utf-8").splitlines() if each.startswith("#")]
        texts = sorted({text for folder in folders for text in of_go(Path(folder))})
        KUBERNETES.write_text("\n".join([*head, *texts, ""]), encoding="utf-8")
        return 0
    found = unjustified(unknown(kubernetes(), literals()))
    for each in found:
        click.echo(f"{each.module}:{each.line}: {shown(each.text)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
