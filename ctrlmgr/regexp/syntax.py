"""Parses patterns as Go's `regexp/syntax` does (parse.go, flags `syntax.Perl`), with Go's error messages."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from ctrlmgr.regexp.character_classes import PERL, POSIX, unicode_class
from ctrlmgr.regexp.tree import Assert, Assertion, Characters, Choice, Node, Repeat, Sequence

_MOST_REPEATS = 1000
_DEEPEST = 100
"""The maximum nesting depth of groups in a pattern; Go allows a depth of a thousand."""

_COUNTED = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}", re.ASCII)
_NAMED = re.compile(r"\(\?P?<")
_CAPTURE_NAME = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_OCTAL = "01234567"
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ANCHORS: dict[str, Assertion] = {"A": "begin_text", "z": "end_text", "b": "word_boundary", "B": "no_word_boundary"}
_HIGHEST = 0x10FFFF


class PatternError(ValueError):
    """Raised if a pattern is not a valid regular expression in Go."""


def _refuse(what: str, where: str) -> NoReturn:
    raise PatternError(f"error parsing regexp: {what}: `{where}`")


@dataclass(slots=True)
class _Group:
    """A group that the parser has not closed yet: its alternatives and sequence, and the flags after the group."""

    outer: str
    choices: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)

    def close(self) -> Node:
        self.choices.append(_joined(self.parts))
        return self.choices[0] if len(self.choices) == 1 else Choice(self.choices)


def _joined(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Sequence(parts)


def parse(pattern: str) -> Node:
    """Return the syntax tree of a pattern; raises PatternError if the pattern is invalid."""
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = ""
        """The flags that apply at the current position, a subset of `i`, `m`, `s` and `U`."""
        self.groups = [_Group("")]
        self.repeated_from = -1
        """The start of the repetition that ends at the current position; -1 if no repetition ends there."""

    @property
    def rest(self) -> str:
        return self.pattern[self.at :]

    def parse(self) -> Node:
        while self.at < len(self.pattern):
            begin = self.at
            repeated = self._one(self.pattern[begin])
            self.repeated_from = begin if repeated and self.repeated_from < 0 else self.repeated_from
            if not repeated:
                self.repeated_from = -1
        if len(self.groups) > 1:
            _refuse("missing closing )", self.pattern)
        return self.groups[0].close()

    def _one(self, character: str) -> bool:
        """Parse the part of the pattern that begins with the given character.

        Return whether this part was a repetition.
        """
        if character in "*+?":
            self._repeat(0 if character != "+" else 1, 1 if character == "?" else -1, self.at + 1)
            return True
        if character == "{" and (counted := _COUNTED.match(self.pattern, self.at)):
            self._repeat_counted(counted)
            return True
        if character == "(":
            self._open()
        elif character == ")":
            self._close()
        elif character == "|":
            group = self.groups[-1]
            group.choices.append(_joined(group.parts))
            group.parts = []
            self.at += 1
        else:
            self._atom(character)
        return False

    def _atom(self, character: str) -> None:
        if character == "\\":
            self._escape()
        elif character == "[":
            self._add(self._class())
        else:
            self.at += 1
            self._add(self._plain(character))

    def _add(self, node: Node) -> None:
        self.groups[-1].parts.append(node)

    def _plain(self, character: str) -> Node:
        lines = "m" in self.flags
        if character == "^":
            return Assert("begin_line" if lines else "begin_text")
        if character == "$":
            return Assert("end_line" if lines else "end_text")
        if character == ".":
            return Characters(negated=True, ranges=[] if "s" in self.flags else [("\n", "\n")])
        return self._literal(character)

    def _literal(self, character: str) -> Characters:
        return Characters([(character, character)], folded="i" in self.flags)

    # Repetitions

    def _repeat(self, least: int, most: int, end: int) -> Repeat:
        begin = self.at
        lazy = self.pattern.startswith("?", end)
        end += lazy
        if self.repeated_from >= 0:
            _refuse("invalid nested repetition operator", self.pattern[self.repeated_from : end])
        parts = self.groups[-1].parts
        if not parts:
            _refuse("missing argument to repetition operator", self.pattern[begin:end])
        repeat = Repeat(parts[-1], least, most, lazy != ("U" in self.flags))
        parts[-1] = repeat
        self.at = end
        return repeat

    def _repeat_counted(self, counted: re.Match[str]) -> None:
        least = _count(counted[1])
        most = least if counted[2] is None else -1 if counted[3] is None else _count(counted[3])
        if least > _MOST_REPEATS or most > _MOST_REPEATS or 0 <= most < least:
            _refuse("invalid repeat count", counted[0])
        begin = self.at
        repeat = self._repeat(least, most, counted.end())
        if (least >= 2 or most >= 2) and not _is_bounded(repeat, _MOST_REPEATS):
            _refuse("invalid repeat count", self.pattern[begin : self.at])

    # Groups

    def _open(self) -> None:
        outer = self.flags
        if self.pattern.startswith("(?", self.at):
            if _NAMED.match(self.pattern, self.at):
                self._read_name()
            elif not self._read_flags():
                return
        else:
            self.at += 1
        if len(self.groups) > _DEEPEST:
            _refuse("expression nests too deeply", self.pattern)
        self.groups.append(_Group(outer))

    def _close(self) -> None:
        if len(self.groups) == 1:
            _refuse("unexpected )", self.pattern)
        group = self.groups.pop()
        self.flags = group.outer
        self.at += 1
        self._add(group.close())

    def _read_name(self) -> None:
        end = self.pattern.find(">", self.at)
        if end < 0:
            _refuse("invalid named capture", self.rest)
        capture = self.pattern[self.at : end + 1]
        if not _CAPTURE_NAME.fullmatch(capture[capture.index("<") + 1 : -1]):
            _refuse("invalid named capture", capture)
        self.at = end + 1

    def _read_flags(self) -> bool:
        """Parse `(?i-s:`, which opens a group, or `(?i-s)`, which only sets flags; return whether a group is open."""
        begin = self.at
        on, off, seen, taking_away = set(self.flags), set[str](), False, False
        for end in range(begin + 2, len(self.pattern)):
            character = self.pattern[end]
            if character in "imsU":
                (off if taking_away else on).add(character)
                seen = True
            elif character == "-" and not taking_away:
                taking_away, seen = True, False
            elif character in ":)" and (seen or not taking_away):
                self.flags = "".join(sorted(on - off))
                self.at = end + 1
                return character == ":"
            else:
                _refuse("invalid or unsupported Perl syntax", self.pattern[begin : end + 1])
        return _refuse("missing closing )", self.pattern)

    # Escapes

    def _escape(self) -> None:
        following = self.pattern[self.at + 1 : self.at + 2]
        if following in _ANCHORS and following:
            self.at += 2
            self._add(Assert(_ANCHORS[following]))
        elif following == "C":
            _refuse("invalid escape sequence", "\\C")
        elif following == "Q":
            end = self.pattern.find("\\E", self.at + 2)
            text = self.pattern[self.at + 2 : end if end >= 0 else None]
            self.at = end + 2 if end >= 0 else len(self.pattern)
            for character in text:
                self._add(self._literal(character))
        else:
            characters = Characters(folded="i" in self.flags)
            if not self._named_class(characters):
                character = self._escaped()
                characters.ranges.append((character, character))
            self._add(characters)

    def _named_class(self, characters: Characters) -> bool:
        r"""Parse `\d`, `\pL` or `\p{Greek}` into a set of characters.

        The method returns whether the pattern contained a named class at this position.
        """
        letter = self.pattern[self.at + 1 : self.at + 2]
        if self.pattern[self.at] != "\\" or not letter:
            return False
        if letter.lower() in PERL:
            _include(characters, Characters(list(PERL[letter.lower()]), negated=letter.isupper()))
            self.at += 2
            return True
        if letter in "pP":
            self._unicode_class(characters, letter == "P")
            return True
        return False

    def _unicode_class(self, characters: Characters, negated: bool) -> None:
        begin = self.at
        if self.pattern.startswith("{", begin + 2):
            end = self.pattern.find("}", begin)
            if end < 0:
                _refuse("invalid character class range", self.pattern[begin:])
            name, end = self.pattern[begin + 3 : end], end + 1
        else:
            name, end = self.pattern[begin + 2 : begin + 3], begin + 3
        if name.startswith("^"):
            name, negated = name[1:], not negated
        test = unicode_class(name)
        if test is None:
            _refuse("invalid character class range", self.pattern[begin:end])
        _include(characters, Characters(tests=[test], negated=negated))
        self.at = end

    def _escaped(self) -> str:
        """Parse a backslash and the character that it makes literal."""
        begin = self.at
        if begin + 1 >= len(self.pattern):
            _refuse("trailing backslash at end of expression", "")
        character = self.pattern[begin + 1]
        self.at = begin + 2
        if character == "0" or (character in _OCTAL and self.pattern[self.at : self.at + 1] in tuple(_OCTAL)):
            return self._octal(character)
        if character == "x":
            return self._hexadecimal(begin)
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character.isascii() and not character.isalnum():
            return character
        return _refuse("invalid escape sequence", self.pattern[begin : self.at])

    def _octal(self, digits: str) -> str:
        while len(digits) < 3 and self.pattern[self.at : self.at + 1] in tuple(_OCTAL):
            digits += self.pattern[self.at]
            self.at += 1
        return chr(int(digits, 8))

    def _hexadecimal(self, begin: int) -> str:
        match = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2})").match(self.pattern, self.at)
        if match is None or int(match[1] or match[2], 16) > _HIGHEST:
            shown = re.compile(r"\{[0-9A-Fa-f]*.?|[0-9A-Fa-f]?.?", re.DOTALL).match(self.pattern, self.at)
            _refuse("invalid escape sequence", self.pattern[begin : shown.end() if shown else self.at])
        self.at = match.end()
        return chr(int(match[1] or match[2], 16))

    # Classes in brackets

    def _class(self) -> Characters:
        begin = self.at
        self.at += 1
        characters = Characters(folded="i" in self.flags)
        if self.pattern.startswith("^", self.at):
            characters.negated = True
            self.at += 1
        first = True
        while first or not self.pattern.startswith("]", self.at):
            first = False
            self._class_part(characters, begin)
        self.at += 1
        return characters

    def _class_part(self, characters: Characters, begin: int) -> None:
        if self.at >= len(self.pattern):
            _refuse("missing closing ]", self.pattern[begin:])
        if self.pattern.startswith("[:", self.at) and (end := self.pattern.find(":]", self.at + 2)) >= 0:
            self._posix_class(characters, end + 2)
        elif not self._named_class(characters):
            self._range(characters, begin)

    def _posix_class(self, characters: Characters, end: int) -> None:
        whole = self.pattern[self.at : end]
        name = whole[2:-2]
        ranges = POSIX.get(name.removeprefix("^"))
        if ranges is None:
            _refuse("invalid character class range", whole)
        _include(characters, Characters(list(ranges), negated=name.startswith("^")))
        self.at = end

    def _range(self, characters: Characters, begin: int) -> None:
        from_ = self.at
        low = high = self._class_character(begin)
        if self.pattern.startswith("-", self.at) and self.pattern[self.at + 1 : self.at + 2] not in ("", "]"):
            self.at += 1
            high = self._class_character(begin)
            if high < low:
                _refuse("invalid character class range", self.pattern[from_ : self.at])
        characters.ranges.append((low, high))

    def _class_character(self, begin: int) -> str:
        if self.at >= len(self.pattern):
            _refuse("missing closing ]", self.pattern[begin:])
        if self.pattern[self.at] == "\\":
            return self._escaped()
        self.at += 1
        return self.pattern[self.at - 1]


def _include(characters: Characters, other: Characters) -> None:
    if other.negated or other.tests:
        characters.tests.append(other.matches)
    else:
        characters.ranges += other.ranges


def _count(digits: str) -> int:
    return int(digits) if len(digits) < 8 else _MOST_REPEATS + 1


def _is_bounded(node: Node, allowed: int) -> bool:
    """Return whether the product of the counts of nested repetitions stays below a limit (`repeatIsValid`)."""
    if isinstance(node, Repeat):
        times = node.most if node.most >= 0 else node.least
        if node.most == 0:
            return True
        if times > allowed:
            return False
        return _is_bounded(node.part, allowed // times if times > 0 else allowed)
    if isinstance(node, (Sequence, Choice)):
        return all(_is_bounded(each, allowed) for each in node.parts)
    return True
