"""The rules of plain English that a program can check: `python -m tests.project.prose [FILE…]` prints each violation.

A text is split into sentences; code in backticks counts as one word, and so does a list of code. A rule
that fails names what to write instead.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LONGEST = 30
"""Words of the longest sentence."""
CODE = "CODE"


@dataclass(frozen=True)
class Rule:
    """A construction that is not used: `pattern` finds it in a sentence, `instead` says what to write."""

    name: str
    pattern: re.Pattern[str]
    instead: str


RULES = (
    Rule(
        "person",
        re.compile(
            r"\b(?:who(?:ever|m)?|nobody|no one|somebody|someone|anybody|anyone|everybody|everyone)\b", re.IGNORECASE
        ),
        "name it: the caller, the client, the user, the controller",
    ),
    Rule(
        "clause as subject",
        re.compile(r"^(?:What|Whatever|That it|That they|Which)\b(?!.*\?$)"),
        "begin with the thing that the clause describes",
    ),
    Rule(
        "coined verb",
        re.compile(
            r"\b(?:be had|is had|comes? by|goes by|take up|taken up|let in|hears? of|heard of|has a say|have a say"
            r"|seen to|sees to|gives? way|made anew|counted anew|written anew|put right|asked to go|came to rest)\b",
            re.IGNORECASE,
        ),
        "use the field's verb: create, delete, update, read, wait, evict",
    ),
    Rule(
        "old name",
        re.compile(r"\b(?:Shelf|Believed|for_now|Familiar|goes_by|rests_on|dearness|Brought|add_when_calm)\b"),
        "use the name that the code has now",
    ),
)


@dataclass(frozen=True)
class Violation:
    line: int
    rule: str
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.line}: {self.rule}: {self.text} ({self.instead})"


def check(text: str) -> list[Violation]:
    """Return the violations in a Markdown page."""
    return [found for line, block in blocks(text) for found in check_block(block, line)]


def check_block(block: str, line: int = 1) -> list[Violation]:
    """Return the violations in one paragraph, list item, table cell or help text."""
    return [found for sentence in sentences(block) for found in check_sentence(sentence, line)]


def check_sentence(sentence: str, line: int) -> Iterator[Violation]:
    for rule in RULES:
        if rule.pattern.search(sentence):
            yield Violation(line, rule.name, sentence, rule.instead)
    listed = re.sub(rf"{CODE}(?:,? (?:and |or )?{CODE})+", CODE, sentence)
    words = len(re.findall(r"[\w’'./-]*\w[\w’'./-]*", listed))
    if words > LONGEST:
        yield Violation(line, f"{words} words", sentence, f"split it: at most {LONGEST} words")


def sentences(block: str) -> list[str]:
    """Return the sentences of a block, with code and links reduced to what counts."""
    plain = re.sub(r"`[^`]*`", CODE, " ".join(block.split()))
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain).replace("**", "").replace("*", "")
    return [
        part.strip()
        for part in re.split(r"(?<=[.!?:;])\s+(?=[A-Z“\"(]|CODE)|(?<=;)\s+|(?<=:)\s+", plain)
        if part.strip()
    ]


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each paragraph, list item and table cell; code and generated tables are left out."""
    gathered: list[str] = []
    start = 0
    fenced = False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        code = fenced or fence or (line.startswith("    ") and not gathered)
        fenced ^= fence
        new = code or not line.strip() or bool(re.match(r"\s*(?:[-*#>|]|\d+\.) ?", line))
        if new and gathered:
            yield start, " ".join(gathered)
            gathered = []
        if line.startswith("|"):
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", line) if re.search(r"\w", cell))
        elif not code and line.strip() and not line.startswith("<!--"):
            start = start if gathered else number
            gathered.append(re.sub(r"^\s*(?:[-*>]|#+|\d+\.) +", "", line))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for each in check(Path(name).read_text(encoding="utf-8")):
            sys.stdout.write(f"{name}:{each}\n")
