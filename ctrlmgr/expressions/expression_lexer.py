"""Splits an expression into tokens, and parses constants.

Guarantees: the lexical rules are those of CEL's language definition and of cel-go's grammar, with the errors of
cel-go's lexer. The lexer takes time linear in the length of the expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.expressions.source import Problem
from ctrlmgr.expressions.values import LEAST_INT, MOST_INT, MOST_UINT, UInt

END: Final = "<EOF>"


class Token(NamedTuple):
    """A token; its kind is `int`, `uint`, `float`, `string`, `bytes`, `name`, `quoted`, END, or the token itself."""

    kind: str
    text: str
    at: int


_QUOTED = (
    r"""[rR](?:'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|"[^"\n\r]*"|'[^'\n\r]*')"""
    r"""|'''(?:[^\\]|\\[\s\S])*?'''|\"\"\"(?:[^\\]|\\[\s\S])*?\"\"\""""
    r"""|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'"""
)
_TOKEN = re.compile(
    rf"""(?P<space>[ \t\n\r\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:{_QUOTED}))
    |(?P<string>{_QUOTED})
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<quoted>`[a-zA-Z0-9_.\-/\ ]+`)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])""",
    re.VERBOSE,
)
_WORDS: Final = frozenset(("in", "true", "false", "null"))


def tokens_of(source: str, problems: list[Problem]) -> list[Token]:
    """Return the tokens of an expression, with END as the last token.

    Invalid parts of the expression are skipped and reported in `problems`.
    """
    return list(_tokens(source, problems))


def _tokens(source: str, problems: list[Problem]) -> Iterator[Token]:
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            end = len(source) if source[at] in "'\"" else at + 1
            problems.append(Problem(at, f"Syntax error: token recognition error at: '{source[at:end]}'"))
            at = end
            continue
        kind, text = match.lastgroup or "", match[0]
        if kind == "sign" or text in _WORDS:
            kind = text
        if kind != "space":
            yield Token(kind, text, at)
        at = match.end()
    yield Token(END, END, len(source))


_ESCAPE = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([abfnrtv\\'\"`?])|([\s\S]?))"
)
_PLAIN: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HIGHEST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def constant(token: Token, *, negative: bool = False) -> Any:
    """Return the value of the constant that a token contains; raises ValueError with cel-go's message."""
    if token.kind == "int":
        return _integer(token.text, negative=negative)
    if token.kind == "uint":
        value = int(token.text[:-1], 16 if token.text.startswith("0x") else 10) if len(token.text) < 40 else -1
        if not 0 <= value <= MOST_UINT:
            raise ValueError("invalid uint literal")
        return UInt(value)
    if token.kind == "float":
        return -float(token.text) if negative else float(token.text)
    if token.kind == "bytes":
        return _bytes(token.text[1:])
    return _string(token.text)


def _integer(text: str, *, negative: bool) -> int:
    if len(text) > 40:
        raise ValueError("invalid int literal")
    value = int(text, 16 if text.startswith("0x") else 10)
    value = -value if negative else value
    if not LEAST_INT <= value <= MOST_INT:
        raise ValueError("invalid int literal")
    return value


def _content(text: str) -> tuple[str, bool]:
    """Return the characters between the quotation marks, and whether the string is a raw string."""
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if text[:3] in ("'''", '"""') and len(text) >= 6 else 1
    inner = text[width:-width].replace("\r\n", "\n").replace("\r", "\n")
    return inner, raw


def _string(text: str) -> str:
    inner, raw = _content(text)
    return inner if raw else _ESCAPE.sub(_character, inner)


def _character(match: re.Match[str]) -> str:
    hexadecimal, octal, plain = match[1] or match[2] or match[3], match[4], match[5]
    if plain:
        return _PLAIN.get(plain, plain)
    if not hexadecimal and not octal:
        raise ValueError("unable to unescape string")
    code = int(hexadecimal, 16) if hexadecimal else int(octal, 8)
    if code > _HIGHEST or code in _SURROGATES:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _bytes(text: str) -> bytes:
    inner, raw = _content(text)
    if raw:
        return inner.encode()
    parts: list[bytes] = []
    at = 0
    for match in _ESCAPE.finditer(inner):
        parts += (inner[at : match.start()].encode(), _byte(match))
        at = match.end()
    return b"".join((*parts, inner[at:].encode()))


def _byte(match: re.Match[str]) -> bytes:
    if match[2] or match[3]:
        raise ValueError("unable to unescape string")
    if match[1]:
        return bytes((int(match[1], 16),))
    return bytes((int(match[4], 8),)) if match[4] else _character(match).encode()


def listed(choices: Sequence[str]) -> str:
    """Format the list of expected tokens for a syntax error, as ANTLR does."""
    written = [each if each in (END, *_CLASSES) else f"'{each}'" for each in choices]
    return written[0] if len(written) == 1 else "{" + ", ".join(written) + "}"


_CLASSES: Final = ("NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER")
OPERAND: Final = ("[", "{", "(", ".", "-", "!", "true", "false", "null", *_CLASSES[:-1])
"""The tokens with which an operand can start."""
