"""The rules of plain English that a program can check: `python -m tests.project.prose [FILE…]` prints each violation.

The checker reads Markdown pages, and in Python files docstrings, comments and messages (see `messages`). The checker
does not check names, single words, strings that a program composes from parts, JavaScript, HTML or shell scripts.

The checker splits each paragraph, list item and table cell into sentences. A piece of code in backticks counts as one
word, and so does a list of such pieces. Code blocks, indented lines and click's preformatted paragraphs (after a line
with `\\b`) are skipped. The message of each rule says what to write instead.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, replace
from inspect import cleandoc
from pathlib import Path

LONGEST = 30
"""The maximum number of words in a sentence."""
CODE = "CODE"
_PREFORMATTED = "\b"
"""The line after which click prints a paragraph without reformatting it."""
_FUNCTIONS = frozenset({"critical", "debug", "echo", "error", "fail", "info", "option", "prompt", "Setting", "warning"})
"""Functions that print or log their arguments, or document an option."""
_KEYWORDS = frozenset({"description", "does", "help", "reason", "short_help", "unused"})
"""Names of keyword arguments whose values users see."""


@dataclass(frozen=True)
class Rule:
    """A construction that prose must not contain: `pattern` finds it in a sentence, `instead` says what to write."""

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
        "no noun",
        re.compile(
            r"^(?:The same|Those|These|That)(?=[.,:;]|$| (?:of|for|with|as|by|to|from|at|on|in|without)\b)"
            r"|^Of (?:these|those|them)\b"
        ),
        "name the thing: the same error, the pages of /debug",
    ),
    Rule(
        "archaic",
        re.compile(
            r"\b(?:anew|whatever|as it were|none such|what (?:comes|came|becomes|became) of"
            r"|(?:comes|came|become|became|becomes) of it)\b",
            re.IGNORECASE,
        ),
        "write again, regardless of, any, the result",
    ),
    Rule(
        "told program",
        re.compile(r"\b(?:told|tells)\b", re.IGNORECASE),
        "say what is sent: notify, report, return, pass, configure",
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
    """Return the sentences of a block, in which code and links are reduced to the words that count."""
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
    fenced = preformatted = False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        preformatted = line.strip() == _PREFORMATTED or (preformatted and bool(line.strip()))
        code = fenced or fence or preformatted or (line.startswith("    ") and not gathered)
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


def check_file(file: Path) -> list[Violation]:
    """Return the violations in a page, or in the docstrings, comments and messages of a Python file."""
    if file.suffix != ".py":
        return check(file.read_text(encoding="utf-8"))
    texts = sorted([*docstrings(file), *comments(file), *messages(file)])
    return [replace(each, line=line + each.line - 1) for line, text in texts for each in check(text)]


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each docstring of a Python file, those that follow an attribute included."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield node.lineno, cleandoc(text)


def messages(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each string that users see: error messages, log messages, printed lines, and descriptions
    of options.

    The strings are those in `raise` statements, in calls of `_FUNCTIONS`, and in the arguments `_KEYWORDS` of any call.
    """
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.Raise(exc=ast.Call()):
                yield from _strings(node)
            case ast.Call() if ast.unparse(node.func).rpartition(".")[2] in _FUNCTIONS:
                yield from _strings(node)
            case ast.keyword(arg=name) if name in _KEYWORDS:
                yield from _strings(node)


def _strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of the strings in a node; a placeholder of an f-string becomes CODE."""
    match node:
        case ast.Constant(value=str() as text):
            yield node.lineno, text
        case ast.JoinedStr():
            parts = (part.value if isinstance(part, ast.Constant) else CODE for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _strings(child)


def comments(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each comment of a Python file; comments on consecutive lines are one text."""
    start, gathered, column = 0, [""], -1
    for token in _comment_tokens(file):
        line, at = token.start
        if (line, at) == (start + len(gathered), column):
            gathered.append(token.string[1:].strip())
        else:
            yield start, "\n".join(gathered)
            start, gathered, column = line, [token.string[1:].strip()], at
    yield start, "\n".join(gathered)


def _comment_tokens(file: Path) -> Iterator[tokenize.TokenInfo]:
    with file.open("rb") as opened:
        for token in tokenize.tokenize(opened.readline):
            if token.type == tokenize.COMMENT and not re.match(r"#(?:!| type:| noqa| pragma)", token.string):
                yield token


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for each in check_file(Path(name)):
            sys.stdout.write(f"{name}:{each}\n")
