"""Formats quoted strings, and JSON that is safe within HTML, as Go does; Python's formats differ."""

from __future__ import annotations

_ESCAPES = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
    "\\": r"\\", '"': r"\"",
}  # fmt: skip
_QUOTED = {"'": r"'\''", '"': "'\"'"}
_HTML = ((b"<", rb"\u003c"), (b">", rb"\u003e"), (b"&", rb"\u0026"))
_SEPARATORS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"))


def quote(text: str) -> str:
    """Format a string as Go's `%q` and `strconv.Quote` do."""
    return '"' + "".join(map(_escape, text)) + '"'


def quote_byte(code: int) -> str:
    """Format a byte as error messages of encoding/json do (`quoteChar`), even within a multi-byte character."""
    character = chr(code)
    if character in _QUOTED:
        return _QUOTED[character]
    return f"'{quote(character)[1:-1]}'"


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escape_html(data: bytes) -> bytes:
    r"""Escape `<`, `>`, `&` and the line separators as `\u003c` and so on, as encoding/json does in every string.

    `data` must be well-formed JSON, because only the strings of well-formed JSON contain these characters.
    """
    for plain, escaped in _HTML:
        if plain in data:
            data = data.replace(plain, escaped)
    if not data.isascii():
        for plain, escaped in _SEPARATORS:
            data = data.replace(plain, escaped)
    return data
