"""Matches a pattern by an automaton whose states are made as texts need them.

Guarantees: a search looks at every character once, and at most at every instruction for each; a pattern's memory is
bounded, as its states are forgotten when there are too many. Several threads may search at once: a state that two of
them make is made twice and one is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ctrlmgr.regexp.tree import Assert, Characters, Choice, Node, Repeat, Sequence

_MOST_STATES = 2_000
_MOST_STEPS = 2_000_000
_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class _Instruction(NamedTuple):
    """Consumes a character (`matches`), or goes on to all of `to` if `holds` says so; the last one does neither."""

    to: tuple[int, ...]
    matches: Callable[[str], bool] | None = None
    holds: Callable[[str, str], bool] | None = None


class TooMuchWork(Exception):
    """Finding all matches takes more steps than are allowed."""


class _State:
    """What may come next after some text: instructions, and what the text ended with."""

    __slots__ = ("before", "found_at_end", "instructions", "next")

    def __init__(self, instructions: frozenset[int], before: str) -> None:
        self.instructions = instructions
        self.before = before
        self.next: dict[str, _State] = {}
        self.found_at_end: bool | None = None


_FOUND: Final = _State(frozenset(), "")
_MATCH = _Instruction(())


class Regexp:
    """A compiled pattern."""

    def __init__(self, tree: Node) -> None:
        """Take what the pattern was read as."""
        self._program: list[_Instruction] = []
        end = self._emit(_MATCH)
        self._start = self._compile(tree, end)
        self._end = end
        self._states: dict[tuple[frozenset[int], str], _State] = {}

    def search(self, text: str) -> bool:
        """Say whether the pattern matches anywhere in a text."""
        state = self._state(frozenset((self._start,)), "")
        for character in text:
            following = state.next.get(character)
            if following is None:
                following = self._step(state, character)
            if following is _FOUND:
                return True
            state = following
        if state.found_at_end is None:
            state.found_at_end = self._end in self._reached(state, "")
        return state.found_at_end

    def spans(self, text: str, most: int = -1) -> list[tuple[int, int]]:
        """Return where the pattern matches, from left to right, as Go's `FindAllStringIndex`: `most` places at most.

        Raises `TooMuchWork` where that takes out of proportion to the text, as patterns can make it.
        """
        found: list[tuple[int, int]] = []
        at, last, fuel = 0, -1, [_MOST_STEPS]
        while at <= len(text) and len(found) != most:
            match = self._first(text, at, fuel)
            if match is None:
                break
            begin, end = match
            if begin != end or begin != last:  # an empty match right behind a match is none
                found.append(match)
            last = end
            at = end if end > at else at + 1
        return found

    def _first(self, text: str, at: int, fuel: list[int]) -> tuple[int, int] | None:
        """Return the leftmost match from `at` on, of several there the one that the pattern prefers."""
        threads: list[tuple[int, int]] = []
        best: tuple[int, int] | None = None
        for here in range(at, len(text) + 1):
            if best is None:
                threads.append((self._start, here))
            elif not threads:
                break
            before, after = text[here - 1 : here] if here else "", text[here : here + 1]
            threads, begin = self._advance(threads, before, after, fuel)
            best = (begin, here) if begin >= 0 else best
        return best

    def _advance(
        self, threads: list[tuple[int, int]], before: str, after: str, fuel: list[int]
    ) -> tuple[list[tuple[int, int]], int]:
        """Return the threads that go on behind `after`, best first, and where a match began that ends here, or -1."""
        seen: set[int] = set()
        onward: list[tuple[int, int]] = []
        waiting = list(reversed(threads))
        while waiting:
            at, begin = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            if at == self._end:
                fuel[0] -= len(seen)
                return onward, begin
            instruction = self._program[at]
            if instruction.matches is not None:
                if after and instruction.matches(after):
                    onward += ((to, begin) for to in instruction.to)
            elif instruction.holds is None or instruction.holds(before, after):
                waiting += ((to, begin) for to in reversed(instruction.to))
        fuel[0] -= len(seen)
        if fuel[0] < 0:
            raise TooMuchWork
        return onward, -1

    def _state(self, instructions: frozenset[int], before: str) -> _State:
        key = (instructions, before)
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= _MOST_STATES:
                self._states = {}
            state = self._states[key] = _State(*key)
        return state

    def _step(self, state: _State, character: str) -> _State:
        reached = self._reached(state, character)
        if self._end in reached:
            following = _FOUND
        else:
            onward = {self._start}  # the match may begin after this character too
            for at in reached:
                instruction = self._program[at]
                if instruction.matches is not None and instruction.matches(character):
                    onward.update(instruction.to)
            following = self._state(frozenset(onward), _class_of(character))
        if len(state.next) < _MOST_STATES:
            state.next[character] = following
        return following

    def _reached(self, state: _State, after: str) -> set[int]:
        """Return the instructions that can be reached without consuming anything."""
        reached: set[int] = set()
        waiting = list(state.instructions)
        while waiting:
            at = waiting.pop()
            if at in reached:
                continue
            reached.add(at)
            instruction = self._program[at]
            if instruction.matches is None and (instruction.holds is None or instruction.holds(state.before, after)):
                waiting += instruction.to
        return reached

    # Compiling: every node is given the instruction to go on with, and returns the one to begin with.

    def _emit(self, instruction: _Instruction) -> int:
        self._program.append(instruction)
        return len(self._program) - 1

    def _compile(self, node: Node, onward: int) -> int:
        if isinstance(node, Characters):
            return self._emit(_Instruction((onward,), matches=node.matches))
        if isinstance(node, Assert):
            return self._emit(_Instruction((onward,), holds=_HOLDS[node.kind]))
        if isinstance(node, Choice):
            return self._emit(_Instruction(tuple(self._compile(each, onward) for each in node.parts)))
        if isinstance(node, Sequence):
            return self._sequence(node.parts, onward)
        return self._repeat(node, onward)

    def _sequence(self, parts: Iterable[Node], onward: int) -> int:
        for part in reversed(list(parts)):
            onward = self._compile(part, onward)
        return onward

    def _repeat(self, node: Repeat, onward: int) -> int:
        if node.most < 0:
            again = self._emit(_MATCH)
            body = self._compile(node.part, again)
            self._program[again] = _Instruction((onward, body) if node.lazy else (body, onward))
            onward = again
        else:
            end = onward
            for _ in range(node.most - node.least):
                body = self._compile(node.part, onward)
                onward = self._emit(_Instruction((end, body) if node.lazy else (body, end)))
        for _ in range(node.least):
            onward = self._compile(node.part, onward)
        return onward


def _class_of(character: str) -> str:
    """Return what assertions need to know of a character: one that stands for all of its class."""
    return "\n" if character == "\n" else "w" if character in _WORD else "-"


def _at_boundary(before: str, after: str) -> bool:
    return (before in _WORD) != (after in _WORD)


_HOLDS: dict[str, Callable[[str, str], bool]] = {
    "begin_text": lambda before, after: not before,
    "end_text": lambda before, after: not after,
    "begin_line": lambda before, after: before in ("", "\n"),
    "end_line": lambda before, after: after in ("", "\n"),
    "word_boundary": _at_boundary,
    "no_word_boundary": lambda before, after: not _at_boundary(before, after),
}
