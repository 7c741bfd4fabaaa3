"""Expands the words of a script: quotes, variables, arithmetic, command substitution, and field splitting.

Guarantees: expansion follows the rules of the POSIX shell (2.6, "Word Expansions") with the default `IFS`. A word in
double quotes becomes one field, and `"$@"` becomes one field per argument. A pattern in a word is replaced by the
existing files that match the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from fnmatch import fnmatchcase, translate
from typing import Final, NamedTuple

from ctrlmgr.simulation.shell.arithmetic import evaluate
from ctrlmgr.simulation.shell.shell_lexer import closing, piece

_PARAMETER: Final = re.compile(r"\$(\w+|[?#@*$!-])")
_BRACED: Final = re.compile(r"(#?)(\w+|[?#@*$!])(?:(:?[-=+?]|##?|%%?|//?|:)(.*))?", re.DOTALL)
_ESCAPED: Final = re.compile(r'\\([\\"$`\n])')
_MAGIC: Final = re.compile(r"[*?[]")
_PLAIN: Final = re.compile(r"[-\w./:=,+%@^]+")
"""Matches words that contain nothing to expand."""
_SPECIAL: Final = re.compile(r"([*?\[\]])")


class _Part(NamedTuple):
    text: str
    is_quoted: bool
    """Whether the part of a word is quoted. A quoted part is not split, and is not a pattern."""
    is_given: bool = False
    """Whether the part of a word is literal. A literal part of a word is not split into fields."""
    begins: bool = False
    """Whether the part of a word begins a new field, for example a part of `"$@"`."""


class Expander:
    """Expands the words of a script for one shell."""

    def __init__(
        self,
        variables: MutableMapping[str, str],
        capture: Callable[[str], str],
        paths: Callable[[], Iterable[str]],
        random: Callable[[], int],
    ) -> None:
        """Create an instance that calls three functions for expansions.

        The function `capture` returns the output of a script. The function `paths` returns the files that match a
        pattern. The function `random` returns the value of `RANDOM`.
        """
        self._variables = variables
        self._capture = capture
        self._paths = paths
        self._random = random
        self.arguments: Sequence[str] = ()
        self.is_random = False
        """Whether an expansion has used a random number."""

    def text(self, raw: str) -> str:
        """Return the expansion of a word as one string."""
        if _PLAIN.fullmatch(raw):
            return raw
        return "".join(each.text for each in self._parts(raw))

    def pattern(self, raw: str) -> str:
        """Return the expansion of a word as a pattern, in which quoted characters are literal."""
        parts = self._parts(raw)
        return "".join(_SPECIAL.sub(r"[\1]", each.text) if each.is_quoted else each.text for each in parts)

    def fields(self, raw: str) -> list[str]:
        """Return the fields to which a word expands: none, one or several fields."""
        if _PLAIN.fullmatch(raw):
            return [raw]
        found: list[list[_Part]] = []
        is_open = False
        for part in self._parts(raw):
            if part.begins:
                is_open = False
            for text in _split(part):
                if text is None:
                    is_open = False
                    continue
                if not is_open:
                    found.append([])
                    is_open = True
                found[-1].append(part._replace(text=text))
        return [field for parts in found for field in self._matched(parts)]

    def _matched(self, parts: Sequence[_Part]) -> list[str]:
        text = "".join(each.text for each in parts)
        if not any(_MAGIC.search(each.text) for each in parts if not each.is_quoted):
            return [text]
        escaped = "".join(_SPECIAL.sub(r"[\1]", each.text) if each.is_quoted else each.text for each in parts)
        depth = escaped.count("/")
        found = sorted(each for each in self._paths() if each.count("/") == depth and fnmatchcase(each, escaped))
        return found or [text]

    # The following methods expand the parts of words.

    def _parts(self, raw: str) -> Iterator[_Part]:
        at = 0
        if raw == "~" or raw.startswith("~/"):
            yield _Part(self._value("HOME") or "/root", is_quoted=True)
            at = 1
        while at < len(raw):
            if parameter := _PARAMETER.match(raw, at):
                yield _Part(self._value(parameter[1]), is_quoted=False)
                at = parameter.end()
                continue
            end = max(piece(raw, at), at + 1)
            yield from self._piece(raw[at:end])
            at = end

    def _piece(self, text: str) -> Iterator[_Part]:
        if text.startswith("'"):
            yield _Part(text[1:-1], is_quoted=True)
        elif text.startswith('"'):
            yield from self._quoted(text[1:-1])
        elif text.startswith("\\"):
            yield _Part(text[1:] if text != "\\\n" else "", is_quoted=True)
        elif text.startswith(("`", "$(", "${")):
            yield _Part(self._substituted(text), is_quoted=False)
        elif text.startswith("$"):
            yield _Part("$", is_quoted=False, is_given=True)
        else:
            yield _Part(text, is_quoted=False, is_given=True)

    def _quoted(self, text: str) -> Iterator[_Part]:
        if text in ("$@", "${@}"):
            yield from (_Part(each, is_quoted=True, begins=True) for each in self.arguments)
            return
        yield _Part(self.quoted(text), is_quoted=True)

    def quoted(self, text: str) -> str:
        """Return the expansion of text in double quotes."""
        found, at = [], 0
        while at < len(text):
            if escaped := _ESCAPED.match(text, at):
                found.append(escaped[1].strip("\n"))
                at = escaped.end()
            elif text[at] == "`" or text[at : at + 2] in ("$(", "${"):
                end = piece(text, at)
                found.append(self._substituted(text[at:end]))
                at = end
            elif parameter := _PARAMETER.match(text, at):
                found.append(self._value(parameter[1]))
                at = parameter.end()
            else:
                found.append(text[at])
                at += 1
        return "".join(found)

    def _substituted(self, text: str) -> str:
        if text.startswith("`"):
            return self._capture(re.sub(r"\\([\\`$])", r"\1", text[1:-1])).rstrip("\n")
        if text.startswith("${"):
            return self._braced(text[2:-1])
        if text.startswith("$((") and closing(text, 2) == len(text) - 2:
            return str(evaluate(self.quoted(text[3:-2]), self._variables))
        return self._capture(text[2:-1]).rstrip("\n")

    # The following methods expand variables.

    def _value(self, name: str) -> str:
        if name == "RANDOM":
            self.is_random = True
            return str(self._random())
        if name in ("@", "*"):
            return " ".join(self.arguments)
        if name == "#":
            return str(len(self.arguments))
        if name.isdecimal() and name != "0":
            return self.arguments[int(name) - 1] if int(name) <= len(self.arguments) else ""
        return self._variables.get(name, "")

    def _braced(self, text: str) -> str:
        """Return the value of the parameter expansion `${text}`."""
        found = _BRACED.fullmatch(text)
        if found is None:
            return ""
        length, name, operator, word = found.groups()
        value = self._value(name)
        if length and not operator:
            return str(len(value))
        if not operator:
            return value
        if operator.lstrip(":")[:1] in ("-", "=", "+", "?"):
            return self._default(name, value, operator, word)
        return _cut(value, operator, word if operator == ":" else self.pattern(word), self.text)

    def _default(self, name: str, value: str, operator: str, word: str) -> str:
        is_there = bool(value) if operator.startswith(":") else name in self._variables or bool(value)
        if operator.endswith("+"):
            return self.text(word) if is_there else ""
        if is_there:
            return value
        if operator.endswith("="):
            self._variables[name] = self.text(word)
        return self.text(word)


def _split(part: _Part) -> list[str | None]:
    """Return the fields of a part of a word; None marks the end of a field."""
    if part.is_quoted or part.is_given:
        return [part.text]
    return [None if each.isspace() else each for each in re.findall(r"\s+|\S+", part.text)]


def _cut(value: str, operator: str, word: str, expand: Callable[[str], str]) -> str:
    """Return a value after the removal of a prefix or suffix, or the replacement of text; or return a substring."""
    if operator == ":":
        first, _, count = expand(word).partition(":")
        start = int(first.strip() or 0) if first.strip().lstrip("-").isdecimal() else 0
        rest = value[start:]
        return rest[: int(count)] if count.strip().isdecimal() else rest
    if operator.startswith("/"):
        selected, _, new = word.partition("/")
        return re.sub(translate(selected)[:-2], lambda _: new, value, count=0 if operator == "//" else 1)
    ends = range(len(value) + 1)
    order = ends if operator in ("#", "%%") else reversed(ends)
    for at in order:
        part, rest = (value[:at], value[at:]) if operator.startswith("#") else (value[at:], value[:at])
        if fnmatchcase(part, word):
            return rest
    return value
