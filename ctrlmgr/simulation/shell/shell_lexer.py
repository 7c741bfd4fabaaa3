"""Splits a shell script into words and operators.

Guarantees: quotes, substitutions and here-documents are never split, at any depth of nesting. If a quote, substitution
or here-document is not closed, `SyntaxProblem` is raised.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_OPERATOR: Final = re.compile(
    r"&>>|&>|[0-9]?<<<|[0-9]?<<-?|[0-9]?<>|[0-9]?[<>]&[0-9-]|[0-9]?>>|[0-9]?>|[0-9]?<|&&|\|\||;;|[;&|()]"
)
_BLANK: Final = re.compile(r"(?:[ \t]|\\\n)+")
_PLAIN: Final = re.compile(r"[^\s;&|()<>'\"`\\$]+")
_CLOSERS: Final = {"(": ")", "{": "}"}


class SyntaxProblem(Exception):
    """Raised if the script has a syntax error."""


class Token(NamedTuple):
    """A token: a word (`word`) or an operator (`op`); the end of a line is also an operator."""

    kind: str
    text: str


NEWLINE: Final = Token("op", "\n")


def tokens(script: str) -> list[Token]:
    """Return the tokens of a script.

    The word after the operator of a here-document is replaced by the content of the here-document.
    """
    return _Lexer(script).tokens()


class _Lexer:
    def __init__(self, script: str) -> None:
        self._script = script
        self._at = 0
        self._pending: list[int] = []

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while (token := self._next()) is not None:
            found.append(token)
            if token == NEWLINE:
                self._documents(found)
            if len(found) >= 2 and found[-2].kind == "op" and found[-2].text.lstrip("0123456789") in ("<<", "<<-"):
                self._pending.append(len(found) - 1)
        self._documents(found)
        return found

    def _next(self) -> Token | None:
        script = self._script
        if blank := _BLANK.match(script, self._at):
            self._at = blank.end()
        if self._at < len(script) and script[self._at] == "#":
            end = script.find("\n", self._at)
            self._at = end if end >= 0 else len(script)
        if self._at >= len(script):
            return None
        if script[self._at] == "\n":
            self._at += 1
            return NEWLINE
        if operator := _OPERATOR.match(script, self._at):
            self._at = operator.end()
            return Token("op", operator[0])
        return self._word()

    def _word(self) -> Token:
        start = self._at
        while self._at < len(self._script):
            end = piece(self._script, self._at)
            if end == self._at:
                break
            self._at = end
        if self._at == start:  # A character that has no meaning here, such as a carriage return, is skipped.
            self._at += 1
        return Token("word", self._script[start : self._at])

    def _documents(self, found: list[Token]) -> None:
        """Replace the delimiters of the here-documents that begin in this line with their contents."""
        for place in self._pending:
            token = found[place]
            delimiter, lines = token.text.strip("'\""), []
            while self._at < len(self._script):
                line, _, _ = self._script[self._at :].partition("\n")
                self._at += len(line) + 1
                if line.lstrip("\t") == delimiter:
                    break
                lines.append(f"{line}\n")
            text = "".join(lines)
            quoted = token.text[:1] in "'\""
            found[place] = Token("word", _quoted(text) if quoted else '"' + re.sub(r'(["])', r"\\\1", text) + '"')
        self._pending.clear()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def piece(text: str, at: int) -> int:
    """Return the end of the quoted, substituted or plain part of a word that begins at the position `at`.

    If no part of a word begins at `at`, return `at`.
    """
    first = text[at]
    if first == "'":
        return _until(text, at + 1, "'") + 1
    if first == '"':
        return quoted_end(text, at + 1) + 1
    if first == "`":
        return _until(text, at + 1, "`") + 1
    if first == "\\":
        return min(at + 2, len(text))
    if first == "$":
        return closing(text, at + 1) + 1 if text[at + 1 : at + 2] in _CLOSERS else at + 1
    found = _PLAIN.match(text, at)
    return found.end() if found else at


def quoted_end(text: str, at: int) -> int:
    """Return the position of the closing double quote."""
    while at < len(text):
        if text[at] == '"':
            return at
        if text[at] == "\\":
            at += 2
        elif text[at] == "$" and text[at + 1 : at + 2] in ("(", "{"):
            at = closing(text, at + 1) + 1
        elif text[at] == "`":
            at = _until(text, at + 1, "`") + 1
        else:
            at += 1
    raise SyntaxProblem('a " is not closed')


def closing(text: str, at: int) -> int:
    """Return the position of the bracket that closes the bracket at `at`."""
    opener, closer, depth = text[at], _CLOSERS[text[at]], 0
    while at < len(text):
        if text[at] == closer:
            depth -= 1
            if not depth:
                return at
            at += 1
        elif text[at] == opener:
            depth += 1
            at += 1
        elif text[at] in "'\"`\\$":
            at = piece(text, at)
        else:
            at += 1
    raise SyntaxProblem(f"a {opener} is not closed")


def _until(text: str, at: int, end: str) -> int:
    found = text.find(end, at)
    if found < 0:
        raise SyntaxProblem(f"a {end} is not closed")
    return found
