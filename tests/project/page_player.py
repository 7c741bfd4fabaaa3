"""Plays pages of the documentation: runs the commands on a page, and compares the output with the output that the page
shows.

A block marked `console` contains commands after `$ `, and below each command the output that the command prints, or
nothing. The commands of a page run in one shell, and each command must end with exit code 0. In an output, `…` stands
for any text within a line; on its own line, it stands for any number of lines. A block with a title is a file: it is
written before the commands run, and a second block with the same title is appended to the file. Commands that need a
minute, or a cluster, are in blocks marked `sh` and are not run.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path


def steps(page: Path) -> list[tuple[str, str]]:
    """Return each command of a page with the output that the page shows for the command; the output is empty if the
    page shows none.
    """
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = [part.partition("\n") for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(command, output) for command, _, output in found]


def commands(page: Path) -> list[str]:
    return [command for command, _ in steps(page)]


def titled(page: Path) -> dict[str, str]:
    """Return the files that a page shows, by their names."""
    files: dict[str, str] = {}
    text = page.read_text(encoding="utf-8")
    for name, content in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', text, re.MULTILINE | re.DOTALL):
        files[name] = files.get(name, "") + content
    return files


MARK = "ran so far:"


def run_all(page: Path, folder: Path, environment: dict[str, str]) -> list[str]:
    """Run the commands of a page in one shell; return the output of each finished command, and the last output."""
    script = "".join(f"{command}\necho '{MARK}'\n" for command in commands(page))
    shell = subprocess.Popen(
        ["sh", "-ec", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = shell.communicate(timeout=200)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)  # also end processes that a failed page left running
    return output.split(f"{MARK}\n")


def looks_like(shown: str) -> re.Pattern[str]:
    """Return a regular expression for the output that a page shows."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else f"{re.escape(line).replace('…', '.*')} *\\n" for line in shown.splitlines()
    ]
    return re.compile("".join(lines))


def check_page(page: Path, folder: Path, environment: dict[str, str], *, is_compared: bool = True) -> None:
    """Write the files of a page into a folder, run the page's commands there, and compare the outputs with the page."""
    for name, content in titled(page).items():
        (folder / name).write_text(content, encoding="utf-8")
    outputs = run_all(page, folder, environment)
    assert len(outputs) == len(commands(page)) + 1, f"$ {commands(page)[len(outputs) - 1]}\n{outputs[-1]}"
    for (command, shown), output in zip(steps(page), outputs, strict=False):
        if shown and is_compared:
            assert looks_like(shown).fullmatch(output), f"$ {command}\n{output}"


def uses_kubectl(page: Path) -> bool:
    """Return whether a command or a file of a page calls kubectl."""
    return any("kubectl " in text for text in (*commands(page), *titled(page).values()))
