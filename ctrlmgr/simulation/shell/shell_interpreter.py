"""Interprets scripts: runs their commands in order, on simulated files and in simulated time.

Guarantees: the interpreter is deterministic and always ends. The time is a number that `sleep` advances. The known
commands are the commands in `builtins` and in the tools. The field `Run.unknown` contains the name of an unknown
command, and also reports a script with a syntax error. The caller defines how an unknown command ends, or that it runs
forever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from math import inf
from typing import Any, Final

from ctrlmgr.simulation.behaviour import ContainerExit
from ctrlmgr.simulation.shell import script_syntax
from ctrlmgr.simulation.shell.archive_tools import ARCHIVE
from ctrlmgr.simulation.shell.builtins import ASSIGNMENT, BUILTINS
from ctrlmgr.simulation.shell.file_tools import FILE
from ctrlmgr.simulation.shell.network_tools import NETWORK
from ctrlmgr.simulation.shell.plain_tools import PLAIN
from ctrlmgr.simulation.shell.redirections import redirect
from ctrlmgr.simulation.shell.script_result import ControlFlow, Exit, Run, RunsForever
from ctrlmgr.simulation.shell.script_syntax import Node, Redirection, parse
from ctrlmgr.simulation.shell.shell_lexer import SyntaxProblem
from ctrlmgr.simulation.shell.state import Input, State
from ctrlmgr.simulation.shell.test_command import holds
from ctrlmgr.simulation.shell.text_tools import TEXT
from ctrlmgr.simulation.shell.tool_interface import Tool, ToolContext
from ctrlmgr.simulation.simulated_files import Files, ReadOnly
from ctrlmgr.simulation.simulated_network import OPEN, Network

_LONGEST: Final = 10_000
"""The maximum number of commands in a run. A script that runs more commands counts as running forever."""
_DEEPEST: Final = 30
"""The maximum depth of nested function calls."""
_TOOLS: Final[Mapping[str, Tool]] = {**PLAIN, **TEXT, **FILE, **NETWORK, **ARCHIVE}
SHELLS: Final = ("sh", "bash", "ash", "dash")
"""The names of shells, such as `sh`."""
_DAEMONS: Final = frozenset(
    ["pause", "nginx", "httpd", "redis-server", "agnhost", "top", "sleep-forever", "postgres", "mysqld", "etcd"]
)
"""The names of commands that run forever."""


def run(
    script: str,
    files: Files,
    variables: Mapping[str, str],
    unknown: ContainerExit | None = None,
    network: Network = OPEN,
) -> Run:
    """Simulate a script, which changes `files`; `unknown` defines the exit code of unknown commands."""
    return Shell(files, variables, unknown, network).run_script(script, ())


def run_command(
    command: Sequence[str],
    files: Files,
    variables: Mapping[str, str],
    unknown: ContainerExit | None = None,
    network: Network = OPEN,
) -> Run:
    """Compute one command, given as words; if the command is a shell with `-c`, compute its script."""
    shell = Shell(files, variables, unknown, network)
    script = script_of(command)
    return shell.run_script(*script) if script is not None else shell.run_words(command)


def script_of(words: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """Return the script and arguments of a shell command; None if the words are not a shell command."""
    if not words or words[0].rsplit("/", 1)[-1] not in SHELLS:
        return None
    for at, word in enumerate(words[1:], 1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            rest = words[at + 1 :]
            prefix = "set -e\n" if any("e" in each for each in words[1 : at + 1]) else ""
            return (prefix + rest[0], rest[2:]) if rest else None
        if not word.startswith(("-", "+")):
            return None
    return None


class Shell(State):
    """A shell with its functions and variables."""

    def __init__(
        self, files: Files, variables: Mapping[str, str], unknown: ContainerExit | None, network: Network
    ) -> None:
        """Create a shell with these files and variables; `unknown` defines how unknown commands end."""
        super().__init__(files, variables, unknown, network)
        self._functions: dict[str, Node] = {}
        self._steps = self._depth = self._guarded = self._captured_code = 0
        self.has_exited = False
        """Whether the command `exit` has ended the last script."""

    def run_script(self, script: str, arguments: Sequence[str]) -> Run:
        """Run a script with these arguments, and return its result."""
        self.expander.arguments = arguments
        return self._finish(lambda: self.script(script))

    def run_words(self, words: Sequence[str]) -> Run:
        """Run a command with its arguments, and return its result."""
        return self._finish(lambda: self.command([*words]))

    def _finish(self, work: Callable[[], int]) -> Run:
        self.has_exited, self._steps = False, 0
        try:
            code = work()
            self.run.ends_at, self.run.code = self.now, code
        except Exit as end:
            self.has_exited = True
            self.run.ends_at, self.run.code = self.now, end.code
        except ControlFlow as end:
            self.run.ends_at, self.run.code = self.now, end.code
        except RunsForever as endless:
            self.run.unknown = self.run.unknown or endless.unknown
        except RecursionError:
            self.run.unknown = self.run.unknown or "sh"
        return self.run

    def script(self, script: str) -> int:
        """Run a script in this shell; return the script's exit code."""
        try:
            block = parse(script)
        except (SyntaxProblem, RecursionError):
            return self._do_unknown("sh")
        return self._block(block)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _LONGEST:
            raise RunsForever

    # The following methods run lists of commands.

    def _block(self, block: script_syntax.Block) -> int:
        """Run commands in order; return the exit code of the last command."""
        code = 0
        for each in block.commands:
            code = self._in_background(each) if each.is_background else self._and_or(each)
            self.variables["?"] = str(code)
        return code

    def _in_background(self, each: script_syntax.AndOr) -> int:
        """Run commands in the background; the commands that follow do not wait for the background commands."""
        began = self.now
        try:
            self._and_or(each)
            self.background.append(self.now)
        except Exit:
            self.background.append(self.now)
        except RunsForever as endless:
            self.background.append(None)
            self.run.unknown = self.run.unknown or endless.unknown
        self.passes(began - self.now)
        return 0

    def _and_or(self, each: script_syntax.AndOr) -> int:
        pipelines = [("", each.first), *each.rest]
        code = 0
        for at, (operator, pipeline) in enumerate(pipelines):
            if (operator == "&&" and code != 0) or (operator == "||" and code == 0):
                continue
            is_last = at == len(pipelines) - 1
            code = self._guarded_by(partial(self._pipeline, pipeline), applies=not is_last or pipeline.is_negated)
            self.variables["?"] = str(code)
            if code and is_last and self.stops_at_errors and not self._guarded and not pipeline.is_negated:
                raise Exit(code)
        return code

    def _guarded_by(self, work: Callable[[], int], *, applies: bool = True) -> int:
        """Run a condition; if the condition fails, the script continues even if failures end the script."""
        self._guarded += applies
        try:
            return work()
        finally:
            self._guarded -= applies

    def _pipeline(self, pipeline: script_syntax.Pipeline) -> int:
        if len(pipeline.commands) == 1:
            code = self._node(pipeline.commands[0])
            return int(code == 0) if pipeline.is_negated else code
        code, text = 0, ""
        for at, command in enumerate(pipeline.commands):
            streams: dict[str, Any] = {"input": Input(text)} if at else {}
            written: list[str] = []
            if at < len(pipeline.commands) - 1:
                streams["out"] = written.append
            with self.with_streams(**streams):
                code = self._subshell(partial(self._node, command))
            text = "".join(written)
        return int(code == 0) if pipeline.is_negated else code

    def _subshell(self, work: Callable[[], int]) -> int:
        """Run commands in a subshell, which does not change the variables and the folder of this shell."""
        variables, folder = dict(self.variables), self.folder
        try:
            return work()
        except Exit as end:
            return end.code
        finally:
            self.variables.clear()
            self.variables.update(variables)
            self.folder = folder

    # The following methods run compound commands.

    def _node(self, node: Node) -> int:
        self._step()
        match node:
            case script_syntax.Simple():
                return self._simple(node)
            case script_syntax.If():
                return self._if(node)
            case script_syntax.While():
                return self._looped(lambda: self._while(node))
            case script_syntax.For():
                return self._looped(lambda: self._for(node))
            case script_syntax.Case():
                return self._case(node)
            case script_syntax.Group():
                work = partial(self._block, node.body)
                return self._subshell(work) if node.is_subshell else work()
            case script_syntax.Function():
                self._functions[node.name] = node.body
                return 0
            case script_syntax.Redirected():
                return self._redirected(node.redirections, lambda: self._node(node.body))

    def _if(self, node: script_syntax.If) -> int:
        for condition, body in node.branches:
            if condition is None or self._holds(condition):
                return self._block(body)
        return 0

    def _holds(self, condition: script_syntax.Block) -> bool:
        return self._guarded_by(partial(self._block, condition)) == 0

    def _looped(self, work: Callable[[], int]) -> int:
        try:
            return work()
        except ControlFlow as leave:
            if leave.what == "return" or leave.levels > 1:
                raise ControlFlow(leave.what, leave.code, leave.levels - 1) from None
            return 0

    def _body(self, body: script_syntax.Block) -> int:
        try:
            return self._block(body)
        except ControlFlow as leave:
            if leave.what != "continue" or leave.levels > 1:
                raise
            return 0

    def _while(self, node: script_syntax.While) -> int:
        code = 0
        before = self._picture()
        while self._holds(node.condition) is not node.is_until:
            self._step()
            code = self._body(node.body)
            after = self._picture()
            self._skip_rounds(before, after)
            before = self._picture()
        return code

    def _picture(self) -> tuple[float, tuple[object, ...]]:
        """Return the time and the other state of the shell that an iteration of a loop can change."""
        written = len(self.run.lines), self.files.writes, len(self.background)
        return self.now, (dict(self.variables), tuple(self.expander.arguments), self.folder, *written)

    def _skip_rounds(self, before: tuple[float, tuple[object, ...]], after: tuple[float, tuple[object, ...]]) -> None:
        """Skip the iterations of a loop that would have the same effect as the last iteration.

        If an iteration changed no state, the next iterations have the same effect until another pod changes a file, or
        a Service changes.
        """
        began, ended = before[0], after[0]
        if before[1] != after[1] or self.expander.is_random or self.streams.input.is_left():
            return
        change = self._next_change(self.files.start + began)
        if change is None or ended == began:
            raise RunsForever
        rounds = int((change - self.files.start - ended) / (ended - began))
        self.passes(max(rounds, 0) * (ended - began))

    def _next_change(self, after: float) -> float | None:
        """Return the next time at which a file may change, or a host that the script has used."""
        changes = self.files.next_change(after), self.network.next_change(after)
        return min((each for each in changes if each is not None), default=None)

    def _for(self, node: script_syntax.For) -> int:
        words = self.expander.arguments if node.words is None else self._fields(node.words)
        code = 0
        for value in words:
            self._step()
            self.variables[node.name] = value
            code = self._body(node.body)
        return code

    def _case(self, node: script_syntax.Case) -> int:
        word = self.expander.text(node.word)
        for patterns, body in node.branches:
            if any(fnmatchcase(word, self.expander.pattern(each)) for each in patterns):
                return self._block(body)
        return 0

    def _fields(self, words: Sequence[str]) -> list[str]:
        return [field for each in words for field in self.expander.fields(each)]

    def captured(self, script: str) -> str:
        """Return the output of a script, for a command substitution."""
        written: list[str] = []
        with self.with_streams(out=written.append):
            self._captured_code = self._subshell(partial(self.script, script))
        return "".join(written)

    # The following methods run simple commands.

    def _simple(self, node: script_syntax.Simple) -> int:
        words, assigned = [*node.words], dict[str, str]()
        self._captured_code = 0
        while words and (found := ASSIGNMENT.fullmatch(words[0])):
            name, adds, value = found.groups()
            words.pop(0)
            assigned[name] = (self.variables.get(name, "") if adds else "") + self.expander.text(value)
        if words[:1] == ["[["]:
            return int(not self._condition(words[1:-1]))
        fields = self._fields(words)
        if not fields:
            self.variables.update(assigned)
            return self._redirected(node.redirections, lambda: self._captured_code)
        kept = {name: self.variables.get(name) for name in assigned}
        self.variables.update(assigned)
        try:
            return self._redirected(node.redirections, lambda: self.command(fields))
        finally:
            for name, old in kept.items():
                self.variables.pop(name, None)
                self.variables.update({name: old} if old is not None else {})

    def _condition(self, words: Sequence[str]) -> bool:
        found: list[str] = []
        for at, raw in enumerate(words):
            is_pattern = at and words[at - 1] in ("=", "==", "!=")
            found.append(self.expander.pattern(raw) if is_pattern else self.expander.text(raw))
        return holds(found, self.files, self.path, patterns=True)

    def _redirected(self, redirections: Sequence[Redirection], work: Callable[[], int]) -> int:
        if not redirections:
            return work()
        with self.with_streams():
            for each in redirections:
                if (code := redirect(self, each)) is not None:
                    return code
            return work()

    # The following methods run a single command.

    def command(self, words: Sequence[str]) -> int:
        """Run a command; return the command's exit code."""
        name, arguments = words[0].rsplit("/", 1)[-1], words[1:]
        if words[0] in self._functions:
            return self._call(words[0], arguments)
        if name in BUILTINS:
            return BUILTINS[name](self, arguments)
        if name in ("[", "test"):
            return int(not holds(arguments[:-1] if name == "[" else arguments, self.files, self.path))
        if name in SHELLS and (script := script_of(words)) is not None:
            return self._nested(*script)
        return self._tool(name, arguments) if name in _TOOLS else self._do_unknown(name)

    def _tool(self, name: str, arguments: Sequence[str]) -> int:
        desk = ToolContext(self.files, self.path, self.variables, self.streams.input.rest, self.connect)
        try:
            code, out, err, takes = _TOOLS[name](arguments, desk)
        except ReadOnly as problem:
            code, out, err, takes = 1, "", f"{name}: {problem}: Read-only file system\n", 0.0
        if out:
            self.streams.out(out)
        if err:
            self.streams.err(err)
        if takes == inf:
            raise RunsForever
        self.passes(takes)
        return code

    def _call(self, name: str, arguments: Sequence[str]) -> int:
        if self._depth >= _DEEPEST:
            raise RunsForever
        before, self.expander.arguments = self.expander.arguments, arguments
        self._depth += 1
        try:
            return self._node(self._functions[name])
        except ControlFlow as leave:
            if leave.what != "return":
                raise
            return leave.code
        finally:
            self._depth -= 1
            self.expander.arguments = before

    def _nested(self, script: str, arguments: Sequence[str]) -> int:
        before, self.expander.arguments = self.expander.arguments, arguments
        stops, self.stops_at_errors = self.stops_at_errors, False
        try:
            return self._subshell(partial(self.script, script))
        finally:
            self.expander.arguments, self.stops_at_errors = before, stops

    def _do_unknown(self, name: str) -> int:
        if name in _DAEMONS:
            raise RunsForever
        if self.unknown is None:
            raise RunsForever(name)
        self.run.unknown = self.run.unknown or name
        self.passes(self.unknown.after)
        return self.unknown.code
