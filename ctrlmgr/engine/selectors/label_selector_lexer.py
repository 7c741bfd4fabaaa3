"""Splits a label selector into tokens, as apimachinery's `labels.Lexer` does."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ctrlmgr.errors import BadRequest

LONGEST: Final = 32 * 1024
MOST_REQUIREMENTS: Final = 1000
"""The maximum length of a label selector in characters, which is also the maximum number of its requirements.

The server parses a selector twice for each request, before it has authenticated the user. Kubernetes does not limit the
length of selectors, but typical selectors have about a hundred characters.
"""

_SYMBOLS = ("==", "!=", "=", "!", "(", ")", ",", ">", "<")
_KEYWORDS = ("in", "notin")
_WORD = re.compile(r"([^=!(),<> \t\r\n\0]+|[=!(),<>]+)\0?")
_SPACE = re.compile(r"[ \t\r\n]*")


class Token(NamedTuple):
    """A token, whose `kind` is a symbol, `in`, `notin`, `identifier` or `end`."""

    kind: str
    text: str


END = Token("end", "")


class Tokens:
    """The tokens of a selector, with the current position."""

    __slots__ = ("_at", "_tokens")

    def __init__(self, tokens: list[Token]) -> None:
        """Create a reader that starts at the first of `tokens`; the last token must be `END`."""
        self._tokens = tokens
        self._at = 0

    def peek(self) -> Token:
        """Return the next token without advancing; `in` and `notin` count as identifiers."""
        return _as_value(self._tokens[self._at])

    def take(self, *, keywords: bool = False) -> Token:
        """Return the next token and advance to the following token, except at the end.

        If `keywords` is set, `in` and `notin` count as operators.
        """
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token if keywords else _as_value(token)


def _as_value(token: Token) -> Token:
    return Token("identifier", token.text) if token.kind in _KEYWORDS else token


def check_length(text: str) -> None:
    """Raise `BadRequest` if a selector is too long."""
    if len(text) > LONGEST:
        raise BadRequest(f"the selector has {len(text)} characters; at most {LONGEST} are read")


def tokenize(text: str) -> Tokens:
    """Split a selector into tokens.

    As in Kubernetes, a NUL character directly after a word is skipped, and any other NUL character ends the selector.
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches the empty string everywhere
        word = _WORD.match(text, at)
        if word is None:
            break
        run, at = word[1], word.end()
        if run[0] in "=!(),<>":
            _cut_symbols(run, tokens)
        else:
            tokens.append(Token(run if run in _KEYWORDS else "identifier", run))
    tokens.append(END)
    return Tokens(tokens)


def _cut_symbols(run: str, tokens: list[Token]) -> None:
    """Split a sequence of symbol characters into tokens; the longest known symbol has precedence."""
    at = 0
    while at < len(run):
        symbol = next(symbol for symbol in _SYMBOLS if run.startswith(symbol, at))
        tokens.append(Token(symbol, symbol))
        at += len(symbol)
