"""Rewrites the links in HTML while the HTML is passed on.

Guarantees:
- Only the values of attributes that contain links change. All other bytes are passed on unchanged.
- At most `_LONGEST` bytes of an incomplete tag are held in memory. A tag longer than `_LONGEST` bytes is passed on
  unchanged.
- The time is linear in the size of the document.

Source: apimachinery `pkg/util/proxy/transport.go` (`atomsToAttrs`, `rewriteHTML`), x/net `html/token.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape, unescape
from typing import Final

_LINKS: Final[Mapping[bytes, frozenset[bytes]]] = {
    tag.encode(): frozenset(each.encode() for each in attributes.split())
    for tag, attributes in (
        ("a", "href"),
        ("applet", "codebase"),
        ("area", "href"),
        ("audio", "src"),
        ("base", "href"),
        ("blockquote", "cite"),
        ("body", "background"),
        ("button", "formaction"),
        ("command", "icon"),
        ("del", "cite"),
        ("embed", "src"),
        ("form", "action"),
        ("frame", "longdesc src"),
        ("head", "profile"),
        ("html", "manifest"),
        ("iframe", "longdesc src"),
        ("img", "longdesc src usemap"),
        ("input", "src usemap formaction"),
        ("ins", "cite"),
        ("link", "href"),
        ("object", "classid codebase data usemap"),
        ("q", "cite"),
        ("script", "src"),
        ("source", "src"),
        ("video", "poster src"),
    )
}
"""The attributes of each tag that contain a URL."""
_RAW: Final = frozenset(
    (b"iframe", b"noembed", b"noframes", b"noscript", b"script", b"style", b"textarea", b"title", b"xmp")
)
"""Tags whose content is text without tags, such as scripts."""
_LONGEST: Final = 16 * 1024
_BEGIN_OF_COMMENT: Final = b"<!--"
_END_OF_COMMENT: Final = re.compile(rb"-->")
_END_OF_TAG: Final = re.compile(rb">")
_VALUE: Final = rb"""(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+|(?=>))"""
_TAG: Final = re.compile(rb"<([a-zA-Z][^\s/>]*+)((?:[\s/]++|=?[^\s/>=]++(?:\s*+=\s*+" + _VALUE + rb"|(?!\s*+=)))*+)>")
_ATTRIBUTE: Final = re.compile(rb"(=?[^\s/>=]++)\s*+=\s*+(" + _VALUE + rb")")


class LinkRewriter:
    """Rewrites the links of one document."""

    def __init__(self, rewrite: Callable[[str], str]) -> None:
        """Create a rewriter, which replaces each URL with the result of `rewrite`."""
        self._rewrite = rewrite
        self._held = b""
        # Matches the end of the current part without tags, such as a script; None outside of such a part.
        self._until: re.Pattern[bytes] | None = None
        self._overlap = 0  # the number of last bytes in which such an end may begin

    def feed(self, data: bytes) -> bytes:
        """Return the next rewritten part of the document, given more input."""
        held, at, parts = self._held + data, 0, list[bytes]()
        while at < len(held):
            end = self._skip(held, at) if self._until is not None else held.find(b"<", at)
            end = len(held) if end < 0 else end
            parts.append(held[at:end])
            at = end
            if self._until is not None or at == len(held):
                break
            taken = self._read(held, at, parts)
            if not taken:
                break
            at += taken
        self._held = held[at:]
        return b"".join(parts)

    def end(self) -> bytes:
        """Return the rest of the document."""
        rest, self._held = self._held, b""
        return rest

    def _skip(self, held: bytes, at: int) -> int:
        """Return the position where the content without tags ends, or where an incomplete end tag may begin."""
        assert self._until is not None, "there is such a part"
        found = self._until.search(held, at)
        if found is None:
            return max(at, len(held) - self._overlap)
        self._until = None
        return found.end()

    def _skip_until(self, end: re.Pattern[bytes], overlap: int) -> None:
        self._until, self._overlap = end, overlap

    def _read(self, held: bytes, at: int, parts: list[bytes]) -> int:
        """Add the tag or comment that begins with `<` to `parts`; return its size, or 0 if it is incomplete."""
        if _BEGIN_OF_COMMENT.startswith(held[at : at + 4]) and len(held) - at < 4:
            return 0
        if held.startswith(_BEGIN_OF_COMMENT, at):
            self._skip_until(_END_OF_COMMENT, 2)
        elif held[at + 1 : at + 2].isalpha():
            return self._tag(held, at, parts)
        parts.append(held[at : at + 2])
        return len(held[at : at + 2])

    def _tag(self, held: bytes, at: int, parts: list[bytes]) -> int:
        """Add a tag to `parts`; return its size, or 0 if it is incomplete."""
        found = _TAG.match(held, at, at + _LONGEST)
        if found is None:
            if len(held) - at < _LONGEST:
                return 0
            self._skip_until(_END_OF_TAG, 0)
            parts.append(b"<")
            return 1
        name = found[1].lower()
        if name in _RAW:
            self._skip_until(re.compile(rb"(?=</" + name + rb"[\s/>])", re.IGNORECASE), len(name) + 3)
        attributes = _LINKS.get(name)
        parts.append(found[0] if attributes is None else self._rewritten(found, attributes))
        return found.end() - at

    def _rewritten(self, tag: re.Match[bytes], attributes: frozenset[bytes]) -> bytes:
        """Return a tag with rewritten links."""

        def replaced(attribute: re.Match[bytes]) -> bytes:
            if attribute[1].lower() not in attributes:
                return attribute[0]
            value = attribute[2]
            quoted = value[1:-1] if value[:1] in (b'"', b"'") else value
            url = unescape(quoted.decode("utf-8", "surrogateescape"))
            link = self._rewrite(url)
            if link == url:
                return attribute[0]
            before = attribute[0][: attribute.start(2) - attribute.start()]
            return before + b'"' + escape(link).encode("utf-8", "surrogateescape") + b'"'

        whole, start = tag[0], tag.start(2) - tag.start()
        return whole[:start] + _ATTRIBUTE.sub(replaced, whole[start:-1]) + b">"
