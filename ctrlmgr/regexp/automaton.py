"""Matches patterns with automata whose states are created on demand.

Guarantees: a search reads each character once, and creates states for at most `MOST_STEPS` steps; a call that needs
more steps raises `TooMuchWork`. The memory for a pattern is bounded, because the pattern drops all its cached states
when their number becomes too large. Several threads may search at once. If two threads create the same state, the
pattern keeps one of the two states.

Because states are cached, a search that failed with `TooMuchWork` may succeed when the caller repeats the search. A
repeated search can fail after a success only if the pattern has dropped its cached states in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ctrlmgr.regexp.program import Program, class_of
from ctrlmgr.regexp.tree import Node
from ctrlmgr.work_budget import TooMuchWork, spend

MOST_STEPS: Final = 60_000
"""The maximum number of steps of one call; each step visits an instruction or tests a character class."""
_MOST_HELD: Final = 200_000
"""The maximum total number of instructions and transitions in the cached states of a pattern."""
_THREADS_PER_STEP: Final = 8
"""The number of threads of the automaton whose move to the next character counts as one step."""


class _State:
    """An automaton state for searches: the instructions that may follow, and the class of the last character."""

    __slots__ = ("before", "found_at_end", "instructions", "next")

    def __init__(self, instructions: frozenset[int], before: str) -> None:
        self.instructions = instructions
        self.before = before
        self.next: dict[str, _State] = {}
        self.found_at_end: bool | None = None


class _Ordered:
    """An automaton state for spans: the started matches in order of preference, and the class of the last character."""

    __slots__ = ("before", "next", "threads")

    def __init__(self, threads: tuple[int, ...], before: str) -> None:
        self.threads = threads
        self.before = before
        self.next: dict[str, _Move] = {}


class _Move(NamedTuple):
    """The transition from a state for spans for a character."""

    to: _Ordered
    origins: tuple[int, ...]
    """For each thread of the state `to`, the index of the thread that it continues."""
    found: int
    """The index of the thread that matched before the character; -1 if no thread matched."""


_FOUND: Final = _State(frozenset(), "")


class _Work:
    """The number of steps that remain for one call."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def pay(self, steps: int) -> None:
        """Subtract used steps from the remaining steps of the call; raises `TooMuchWork` if no steps remain."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork

    def charge(self) -> None:
        """Subtract the used steps from the work budget of the caller."""
        spend(MOST_STEPS - self.left)


class Regexp:
    """A compiled pattern."""

    def __init__(self, tree: Node) -> None:
        """Create a regular expression from a parsed pattern; the pattern is compiled at the first match."""
        self._tree = tree
        self._compiled: Program | None = None
        self._is_too_large = False
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._ordered: dict[tuple[tuple[int, ...], str], _Ordered] = {}
        self._held = 0

    def search(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a string.

        Raises `TooMuchWork` if the search needs too many steps.
        """
        program, work = self._program(), _Work()
        try:
            return self._search(program, text, work)
        finally:
            work.charge()

    def _search(self, program: Program, text: str, work: _Work) -> bool:
        state = self._state(frozenset((program.start,)), "")
        for character in text:
            following = state.next.get(character)
            if following is None:
                following = self._step(program, state, character, work)
            if following is _FOUND:
                return True
            state = following
        if state.found_at_end is None:
            state.found_at_end = program.end in _reached(program, state, "", work)
        return state.found_at_end

    def spans(self, text: str, most: int = -1) -> list[tuple[int, int]]:
        """Return the spans of at most `most` matches, from left to right, as Go's `FindAllStringIndex` does.

        Raises `TooMuchWork`.
        """
        program, work = self._program(), _Work()
        try:
            return self._spans(program, text, most, work)
        finally:
            work.charge()

    def _spans(self, program: Program, text: str, most: int, work: _Work) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        at, last = 0, -1
        while at <= len(text) and len(found) != most:
            match = self._first(program, text, at, work)
            if match is None:
                break
            begin, end = match
            if begin != end or begin != last:  # an empty match directly after another match does not count
                found.append(match)
            last = end
            at = end if end > at else at + 1
        return found

    def _program(self) -> Program:
        if self._compiled is None:
            if self._is_too_large:
                raise TooMuchWork
            try:
                self._compiled = Program(self._tree)
            except TooMuchWork:
                self._is_too_large = True
                raise
        return self._compiled

    # Spans of matches

    def _first(self, program: Program, text: str, at: int, work: _Work) -> tuple[int, int] | None:
        """Return the leftmost match that begins at or after the position `at`.

        If several matches begin at one position, the method returns the match that the pattern prefers.
        """
        start = (program.start,)
        state, begins = self._in_order(start, class_of(text[at - 1 : at] if at else "")), [at]
        best: tuple[int, int] | None = None
        for here in range(at, len(text) + 1):
            character = text[here : here + 1]
            move = state.next.get(character) or self._move(program, state, character, work)
            work.pay(1 + len(begins) // _THREADS_PER_STEP)
            if move.found >= 0:
                best = (begins[move.found], here)
            begins = [begins[origin] for origin in move.origins]
            state = move.to
            if best is None:
                begins.append(here + 1)
                state = self._in_order((*state.threads, *start), state.before)
            elif not begins:
                break
        return best

    def _in_order(self, threads: tuple[int, ...], before: str) -> _Ordered:
        key = (threads, before)
        state = self._ordered.get(key)
        if state is None:
            self._hold(1 + len(threads))
            state = self._ordered[key] = _Ordered(*key)
        return state

    def _move(self, program: Program, state: _Ordered, after: str, work: _Work) -> _Move:
        """Return the transition for a character: the threads that continue, and the thread that matched before."""
        seen: set[int] = set()
        consumed: dict[int, bool] = {}
        onward: list[int] = []
        origins: list[int] = []
        found = -1
        waiting = [(at, origin) for origin, at in enumerate(state.threads)][::-1]
        while waiting:
            at, origin = waiting.pop()
            if at in seen:
                continue
            work.pay(1)
            seen.add(at)
            if at == program.end:
                found = origin
                break
            instruction = program.instructions[at]
            if instruction.consumes >= 0:
                if after and _consumes(program, instruction.consumes, after, consumed, work):
                    onward += instruction.to
                    origins += [origin] * len(instruction.to)
            elif instruction.holds is None or instruction.holds(state.before, after):
                waiting += ((to, origin) for to in reversed(instruction.to))
        move = _Move(self._in_order(tuple(onward), class_of(after)), tuple(origins), found)
        self._hold(1 + len(origins))
        state.next[after] = move
        return move

    # Searches that only return whether there is a match

    def _state(self, instructions: frozenset[int], before: str) -> _State:
        key = (instructions, before)
        state = self._states.get(key)
        if state is None:
            self._hold(1 + len(instructions))
            state = self._states[key] = _State(*key)
        return state

    def _hold(self, count: int) -> None:
        self._held += count
        if self._held > _MOST_HELD:
            self._states, self._ordered, self._held = {}, {}, count

    def _step(self, program: Program, state: _State, character: str, work: _Work) -> _State:
        reached = _reached(program, state, character, work)
        if program.end in reached:
            following = _FOUND
        else:
            following = self._state(_behind(program, reached, character, work), class_of(character))
        self._hold(1)
        state.next[character] = following
        return following


def _behind(program: Program, reached: Iterable[int], character: str, work: _Work) -> frozenset[int]:
    """Return the instructions that follow a character; a new match may also start after the character."""
    onward = {program.start}
    consumed: dict[int, bool] = {}
    for at in reached:
        instruction = program.instructions[at]
        if instruction.consumes >= 0 and _consumes(program, instruction.consumes, character, consumed, work):
            onward.update(instruction.to)
    return frozenset(onward)


def _consumes(program: Program, number: int, character: str, known: dict[int, bool], work: _Work) -> bool:
    """Return whether a character is in a class; the result is cached for all instructions with this class."""
    verdict = known.get(number)
    if verdict is None:
        tested = program.classes[number]
        work.pay(tested.weight)
        verdict = known[number] = tested.matches(character)
    return verdict


def _reached(program: Program, state: _State, after: str, work: _Work) -> set[int]:
    """Return the instructions that are reachable without consuming a character."""
    reached: set[int] = set()
    waiting: list[int] = list(state.instructions)
    while waiting:
        at = waiting.pop()
        if at in reached:
            continue
        work.pay(1)
        reached.add(at)
        instruction = program.instructions[at]
        if instruction.consumes < 0 and (instruction.holds is None or instruction.holds(state.before, after)):
            waiting += instruction.to
    return reached
