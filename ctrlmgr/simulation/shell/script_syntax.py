"""The syntax tree of a script: commands, pipelines, lists, branches, loops, functions.

Guarantees: if a script does not follow the grammar of the POSIX shell (extended by `[[ … ]]`), `SyntaxProblem` is
raised.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from ctrlmgr.simulation.shell.shell_lexer import NEWLINE, SyntaxProblem, Token, tokens

_REDIRECTION: Final = re.compile(r"(?:[0-9]?(?:<<<|<<-?|<>|>>|[<>]&[0-9-]|>|<))|&>>?")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_RESERVED: Final = frozenset(["then", "elif", "else", "fi", "do", "done", "esac", "}"])


class Redirection(NamedTuple):
    """A redirection of input or output: an operator such as `2>`, and a word."""

    operator: str
    target: str


class Simple(NamedTuple):
    """A simple command: its words before expansion, and its redirections."""

    words: Sequence[str]
    redirections: Sequence[Redirection]


class Pipeline(NamedTuple):
    """A pipeline, in which each command reads the output of the previous command."""

    commands: Sequence[Node]
    is_negated: bool


class AndOr(NamedTuple):
    """A list of pipelines; `&&` or `||` precedes each pipeline after the first."""

    first: Pipeline
    rest: Sequence[tuple[str, Pipeline]]
    is_background: bool


class Block(NamedTuple):
    """Commands that run in the given order."""

    commands: Sequence[AndOr]


class If(NamedTuple):
    """An `if` command: conditions, each with the commands that follow it.

    The last commands may have no condition (`else`).
    """

    branches: Sequence[tuple[Block | None, Block]]


class While(NamedTuple):
    """A loop with a condition (`while` or `until`)."""

    condition: Block
    body: Block
    is_until: bool


class For(NamedTuple):
    """A loop over words (`for`); if the words are None, the loop is over the script's arguments."""

    name: str
    words: Sequence[str] | None
    body: Block


class Case(NamedTuple):
    """A `case` command: a word, and the commands for each group of patterns."""

    word: str
    branches: Sequence[tuple[Sequence[str], Block]]


class Group(NamedTuple):
    """Commands in braces or parentheses."""

    body: Block
    is_subshell: bool


class Function(NamedTuple):
    """A function definition."""

    name: str
    body: Node


class Redirected(NamedTuple):
    """A compound command, with its redirections."""

    body: Node
    redirections: Sequence[Redirection]


Node: TypeAlias = Simple | If | While | For | Case | Group | Function | Redirected


def parse(script: str) -> Block:
    """Return the syntax tree of a script; raises `SyntaxProblem` if the script has a syntax error."""
    parser = _Parser(tokens(script))
    found = parser.block()
    if parser.peek() is not None:
        raise SyntaxProblem(f"{parser.text()!r} is not expected")
    return found


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    # The following methods read tokens.

    def peek(self, ahead: int = 0) -> Token | None:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else None

    def text(self) -> str:
        found = self.peek()
        return found.text if found is not None else ""

    def _take(self) -> Token:
        found = self.peek()
        if found is None:
            raise SyntaxProblem("unexpected end")
        self._at += 1
        return found

    def _is_op(self, *texts: str) -> bool:
        found = self.peek()
        return found is not None and found.kind == "op" and found.text in texts

    def _is_word(self, *texts: str) -> bool:
        found = self.peek()
        return found is not None and found.kind == "word" and found.text in texts

    def _expect(self, text: str) -> None:
        if (found := self._take()).text != text:
            raise SyntaxProblem(f"{text!r} is expected, not {found.text!r}")

    def _skip(self, *texts: str) -> None:
        while self._is_op("\n", *texts):
            self._at += 1

    # The following methods parse lists of commands.

    def block(self) -> Block:
        found = []
        self._skip(";")
        while not self._ends():
            found.append(self._and_or())
            if not self._is_op(";", "&", "\n") and not self._ends():
                raise SyntaxProblem(f"{self.text()!r} is not expected")
            self._skip(";", "&")
        return Block(found)

    def _ends(self) -> bool:
        return self.peek() is None or self._is_op(")", ";;") or self._is_word(*_RESERVED)

    def _and_or(self) -> AndOr:
        first, rest = self._pipeline(), []
        while self._is_op("&&", "||"):
            operator = self._take().text
            self._skip()
            rest.append((operator, self._pipeline()))
        return AndOr(first, rest, self._is_op("&"))

    def _pipeline(self) -> Pipeline:
        negated = False
        while self._is_word("!"):
            self._at += 1
            negated = not negated
        commands = [self._command()]
        while self._is_op("|"):
            self._at += 1
            self._skip()
            commands.append(self._command())
        return Pipeline(commands, negated)

    # The following methods parse commands.

    def _command(self) -> Node:
        found = self._compound()
        if found is None:
            return self._simple()
        redirections = []
        while (one := self._redirection()) is not None:
            redirections.append(one)
        return Redirected(found, redirections) if redirections else found

    def _compound(self) -> Node | None:
        if self._is_op("("):
            self._at += 1
            return self._closed(Group(self.block(), is_subshell=True), ")")
        readers = {"{": self._group, "if": self._if, "while": self._while, "until": self._while, "for": self._for}
        for word, read in {**readers, "case": self._case, "function": self._function}.items():
            if self._is_word(word):
                return read()
        opening, name = self.peek(1), self.text()
        if opening == Token("op", "(") and self.peek(2) == Token("op", ")") and _NAME.fullmatch(name):
            self._at += 3
            self._skip()
            return Function(name, self._command())
        return None

    def _closed(self, node: Node, text: str) -> Node:
        self._expect(text)
        return node

    def _group(self) -> Node:
        self._expect("{")
        return self._closed(Group(self.block(), is_subshell=False), "}")

    def _function(self) -> Node:
        self._expect("function")
        name = self._take().text
        self._skip("(", ")")
        return Function(name, self._command())

    def _if(self) -> Node:
        branches: list[tuple[Block | None, Block]] = []
        self._expect("if")
        while True:
            condition = self.block()
            self._expect("then")
            branches.append((condition, self.block()))
            word = self._take().text
            if word == "else":
                branches.append((None, self.block()))
                word = self._take().text
            if word == "fi":
                return If(branches)
            if word != "elif":
                raise SyntaxProblem(f"{word!r} is not expected in `if`")

    def _while(self) -> Node:
        is_until = self._take().text == "until"
        condition = self.block()
        return While(condition, self._body(), is_until)

    def _body(self) -> Block:
        self._expect("do")
        body = self.block()
        self._expect("done")
        return body

    def _for(self) -> Node:
        self._expect("for")
        name, words = self._take().text, None
        self._skip()
        if self._is_word("in"):
            self._at += 1
            words = []
            while not self._is_op(";", "\n"):
                words.append(self._take().text)
        self._skip(";")
        return For(name, words, self._body())

    def _case(self) -> Node:
        self._expect("case")
        word, branches = self._take().text, []
        self._skip()
        self._expect("in")
        self._skip()
        while not self._is_word("esac"):
            branches.append((self._patterns(), self.block()))
            self._skip(";;")
        self._expect("esac")
        return Case(word, branches)

    def _patterns(self) -> list[str]:
        if self._is_op("("):
            self._at += 1
        found = [self._take().text]
        while self._is_op("|"):
            self._at += 1
            found.append(self._take().text)
        self._expect(")")
        return found

    def _simple(self) -> Simple:
        words: list[str] = []
        redirections = []
        if self._is_word("[["):
            return Simple(self._condition(), [])
        while (found := self.peek()) is not None:
            if found.kind == "word":
                words.append(self._take().text)
            elif (one := self._redirection()) is not None:
                redirections.append(one)
            else:
                break
        if not words and not redirections:
            raise SyntaxProblem(f"{self.text()!r} is not expected")
        return Simple(words, redirections)

    def _condition(self) -> list[str]:
        """Return the words of `[[ … ]]`; operators in the brackets are also words."""
        found = [self._take().text]
        while found[-1] != "]]":
            token = self._take()
            found += [token.text] if token != NEWLINE else []
        return found

    def _redirection(self) -> Redirection | None:
        found = self.peek()
        if found is None or found.kind != "op" or not _REDIRECTION.fullmatch(found.text):
            return None
        operator = self._take().text
        if re.search("[<>]&", operator):
            return Redirection(operator, "")
        return Redirection(operator, self._take().text)
