"""How a script falls into commands: its words and operators, lists of commands, branches, loops.

Guarantees: whatever the text, it is parted into something; what cannot be understood is a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

Tokens: TypeAlias = "list[tuple[str, str]]"
"""Each with what it is (`op`, `word`) and its text."""

_TOKEN: Final = re.compile(
    r"""[ \t]*(?:(?P<comment>\#[^\n]*)|(?P<op>&&|\|\||[12]?>&[12]|&>>|&>|[12]?>>|[12]?>|;;"""
    r"""|[;&|\n(){}](?=[\s;]|$)|[;&|\n])"""
    r"""|(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\$\(\([^()]*\)\)|\$\([^)]*\)|`[^`]*`|\\.|[^\s;&|<>'"`\\]|<)+))""",
    re.VERBOSE,
)


def tokens(script: str) -> Iterator[tuple[str, str]]:
    """Yield the words and operators of a script, the end of a line as `;`."""
    at = 0
    while at < len(script):
        found = _TOKEN.match(script, at)
        if found is None or found.end() == at:
            at += 1
            continue
        at = found.end()
        if found["op"] is not None:
            yield "op", ";" if found["op"] == "\n" else found["op"]
        elif found["word"] is not None:
            yield "word", found["word"]


_OPENS: Final = frozenset(["if", "while", "until", "for", "(", "{"])
_CLOSES: Final = frozenset(["fi", "done", ")", "}"])


def split(tokens: list[tuple[str, str]]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the commands of a list with the operator before each; what is within a compound is not split."""
    depth, operator, part = 0, ";", list[tuple[str, str]]()
    for kind, text in tokens:
        is_first = not part or part[-1][1] in (";", "&&", "||", "then", "do", "else", "!", "|", "&")
        if text in _OPENS and is_first:
            depth += 1
        elif text in _CLOSES and depth:
            depth -= 1
        if kind == "op" and text in (";", "&&", "||", "&", "|") and not depth:
            yield operator, part
            operator, part = text, []
        else:
            part.append((kind, text))
    yield operator, part


def branches(
    tokens: list[tuple[str, str]],
) -> list[tuple[list[tuple[str, str]] | None, list[tuple[str, str]]]]:
    """Part `if … then … elif … then … else … fi` into conditions (None: else) and bodies."""
    found: list[tuple[list[tuple[str, str]] | None, list[tuple[str, str]]]] = []
    condition: list[tuple[str, str]] | None = []
    body: list[tuple[str, str]] = []
    current, depth = condition, 0
    for kind, text in tokens[1:]:
        if depth == 0 and text == "then":
            current = body
            continue
        if depth == 0 and text in ("elif", "else", "fi"):
            found.append((condition, body))
            condition, body = ([] if text == "elif" else None), []
            current = condition if condition is not None else body
            continue
        depth += (text in _OPENS) - (text in _CLOSES)
        if current is not None:
            current.append((kind, text))
    return found


def loop(tokens: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Part `while … do … done`, or `for …`, into its head and its body."""
    at = next((index for index, (_, text) in enumerate(tokens) if text == "do"), len(tokens))
    last = len(tokens) - 1 if tokens and tokens[-1][1] == "done" else len(tokens)
    head = list(tokens[1:at])
    while head and head[-1][1] == ";":
        head.pop()
    return head, tokens[at + 1 : last]
