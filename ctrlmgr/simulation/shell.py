"""A small shell: what `sh -c` would do, worked out at once instead of being executed.

Guarantees: deterministic, and it always ends. A script runs on files that are a dictionary; time is a number that
`sleep` moves. It knows `exit`, `sleep`, `true`, `false`, `echo`, `printf`, `cat`, `touch`, `rm`, `mkdir`, `test` and
its brackets, `seq`, `id -u`, variables, `$(…)`, `$((…))`, `&&`, `||`, `;`, `!`, `if`, `while`, `until`, `for`,
redirection to files, and `exec`. Whatever else it meets is named (`Run.unknown`), and runs for ever or, if the caller
says so, ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ctrlmgr.simulation.arithmetic import reckon
from ctrlmgr.simulation.behaviour import Ending
from ctrlmgr.simulation.syntax import branches, loop, split, tokens

_LONGEST: Final = 10_000
"""Commands after which a script counts as running for ever."""

_PART: Final = re.compile(
    r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|(\$\(\([^()]*\)\)|\$\([^)]*\)|`[^`]*`)|((?:(?!\$\()[^'"\\`])+)""", re.DOTALL
)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+|\?))")
_WORKED_OUT: Final = re.compile(r"\$\(\(([^()]*)\)\)|\$\(([^)]*)\)|`([^`]*)`|" + _VARIABLE.pattern)


class Line(NamedTuple):
    """Something written to the standard output, so many seconds after the start."""

    at: float
    text: str
    ends: bool = True
    """Whether the next begins on a line of its own."""

    @property
    def written(self) -> str:
        """It as it was written."""
        return f"{self.text}\n" if self.ends else self.text


class Snapshot(NamedTuple):
    """The files as they were from a moment on."""

    at: float
    files: Mapping[str, str]


@dataclass
class Run:
    """What came of a script; `ends_at` None: it runs for ever."""

    ends_at: float | None = None
    code: int = 0
    lines: list[Line] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    unknown: str = ""

    def files_at(self, seconds: float) -> Mapping[str, str]:
        """Return the files as they were so long after the start."""
        found: Mapping[str, str] = {}
        for each in self.snapshots:
            if each.at > seconds:
                break
            found = each.files
        return found


class _Exit(Exception):  # it ends a script, and is no error
    def __init__(self, code: int) -> None:
        self.code = code


class _ForEver(Exception):  # likewise
    def __init__(self, unknown: str = "") -> None:
        self.unknown = unknown


def run(
    script: str, files: MutableMapping[str, str], variables: Mapping[str, str], unknown: Ending | None = None
) -> Run:
    """Work out a script; `files` is left as the script leaves it. Commands that are not known end as `unknown` says."""
    return _Shell(files, variables, unknown).run(script)


def run_command(
    command: Sequence[str], files: MutableMapping[str, str], variables: Mapping[str, str], unknown: Ending | None = None
) -> Run:
    """Work out one command, given as words; a shell with `-c` is a script."""
    words = [_expand(each, variables) if "$(" not in each else each for each in command]
    if len(words) >= 3 and words[0].rsplit("/", 1)[-1] in ("sh", "bash", "ash", "dash") and "c" in words[1]:
        return run(command[2], files, variables, unknown)
    return _Shell(files, variables, unknown).run_words(list(command))


def _expand(text: str, variables: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name, default, bare = found.groups()
        return variables.get(name or bare) or (default or "")

    return _VARIABLE.sub(value, text)


class _Shell:
    def __init__(self, files: MutableMapping[str, str], variables: Mapping[str, str], unknown: Ending | None) -> None:
        self._unknown = unknown
        self._files = files
        self._variables = {**variables, "?": "0"}
        self._now = 0.0
        self._steps = 0
        self._run = Run()
        self._keep()

    def run(self, script: str) -> Run:
        return self._finish(lambda: self._block([*tokens(script)]))

    def run_words(self, words: list[str]) -> Run:
        return self._finish(lambda: self._command(words))

    def _finish(self, work: object) -> Run:
        try:
            code = work()  # type: ignore[operator]  # one of the two lambdas above
            self._run.ends_at, self._run.code = self._now, code
        except _Exit as end:
            self._run.ends_at, self._run.code = self._now, end.code
        except _ForEver as endless:
            self._run.unknown = self._run.unknown or endless.unknown
        return self._run

    def _keep(self) -> None:
        self._run.snapshots.append(Snapshot(self._now, dict(self._files)))

    # Lists of commands

    def _block(self, tokens: list[tuple[str, str]]) -> int:
        """Run commands one after the other; return the last one's code."""
        code = 0
        skip = False
        for operator, part in split(tokens):
            skip = (operator == "&&" and code != 0) or (operator == "||" and code == 0)
            if part and not skip:
                code = self._compound(part)
                self._variables["?"] = str(code)
        return code

    def _compound(self, tokens: list[tuple[str, str]]) -> int:
        self._steps += 1
        if self._steps > _LONGEST:
            raise _ForEver
        first = tokens[0][1]
        if first == "!":
            return int(self._compound(tokens[1:]) == 0)
        if first == "if":
            return self._if(tokens)
        if first in ("while", "until"):
            return self._while(tokens, until=first == "until")
        if first == "for":
            return self._for(tokens)
        if first in ("(", "{"):
            return self._block(tokens[1:-1])
        return self._simple(tokens)

    def _if(self, tokens: list[tuple[str, str]]) -> int:
        for condition, body in branches(tokens):
            if condition is None or self._block(condition) == 0:
                return self._block(body)
        return 0

    def _while(self, tokens: list[tuple[str, str]], *, until: bool) -> int:
        condition, body = loop(tokens)
        code = 0
        while (self._block(condition) == 0) is not until:
            code = self._block(body)
        return code

    def _for(self, tokens: list[tuple[str, str]]) -> int:
        head, body = loop(tokens)
        name = head[0][1] if head else ""
        code = 0
        for _, raw in head[2:]:
            for value in self._words(raw):
                self._variables[name] = value
                code = self._block(body)
        return code

    def _words(self, raw: str) -> list[str]:
        """Return the words of a token: what a command writes that stands for itself is several."""
        found = re.fullmatch(r"\$\(([^()]*)\)|`([^`]*)`", raw)
        if found:
            return self._captured(found[1] or found[2] or "").split()
        return [self._word(raw)]

    def _word(self, raw: str) -> str:
        found = []
        for single, double, escaped, command, plain in _PART.findall(raw):
            if single:
                found.append(single)
            elif double:
                found.append(self._worked_out(re.sub(r'\\(["\\$`])', r"\1", double)))
            elif escaped:
                found.append(escaped)
            else:
                found.append(self._worked_out(command or plain))
        return "".join(found)

    def _worked_out(self, text: str) -> str:
        """Return a text with the values of variables and sums, and what commands in it write."""

        def value(found: re.Match[str]) -> str:
            sum_, one, other, name, default, bare = found.groups()
            if sum_ is not None:
                return str(reckon(_expand(sum_, self._variables), self._variables))
            if one is not None or other is not None:
                return self._captured(one or other or "")
            return self._variables.get(name or bare) or (default or "")

        return _WORKED_OUT.sub(value, text)

    def _captured(self, script: str) -> str:
        """Return what a script writes, without the end of its last line."""
        outer, self._run.lines = self._run.lines, []
        try:
            self._block([*tokens(script)])
        except _Exit as end:
            self._variables["?"] = str(end.code)
        finally:
            written, self._run.lines = self._run.lines, outer
        return "".join(each.written for each in written).rstrip("\n")

    # One command

    def _simple(self, tokens: list[tuple[str, str]]) -> int:
        words: list[str] = []
        target, append = "", False
        index = 0
        while index < len(tokens):
            kind, raw = tokens[index]
            if kind == "op" and raw.endswith(">"):
                name = self._word(tokens[index + 1][1]) if index + 1 < len(tokens) else ""
                if not raw.startswith("2"):
                    target, append = name, raw.endswith(">>")
                index += 1
            elif kind == "word":
                words += self._words(raw)
            index += 1
        while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], re.DOTALL):
            name, _, value = words.pop(0).partition("=")
            self._variables[name] = value
        return self._command(words, target, append=append) if words else 0

    def _command(self, words: list[str], target: str = "", *, append: bool = False) -> int:
        name, arguments = words[0].rsplit("/", 1)[-1], words[1:]
        if name == "exec" and arguments:
            raise _Exit(self._command(arguments, target, append=append))
        if name in ("sh", "bash", "ash", "dash") and len(arguments) >= 2 and "c" in arguments[0]:
            return self._block([*tokens(arguments[1])])
        if name in ("echo", "printf", "cat", "date", "hostname", "seq", "id"):
            return self._output(name, arguments, target, append=append)
        if target and name in (":", "true"):
            self._write(target, "", append=append)
        known = getattr(self, f"_do_{name}", None) if name not in ("[", "[[") else self._do_test
        if name == ":":
            return 0
        if known is None:
            return self._do_unknown(name)
        code: int = known(arguments)
        return code

    def _do_unknown(self, name: str) -> int:
        if name in _DAEMONS:
            raise _ForEver
        if self._unknown is None:
            raise _ForEver(name)
        self._run.unknown = self._run.unknown or name
        self._now += self._unknown.after
        return self._unknown.code

    def _output(self, name: str, arguments: list[str], target: str, *, append: bool) -> int:
        code, text = 0, ""
        if name == "cat":
            missing = [each for each in arguments if each not in self._files]
            text = "".join(self._files.get(each, "") for each in arguments)
            code = int(bool(missing))
            if missing and not target:
                text += "".join(f"cat: can't open '{each}': No such file or directory\n" for each in missing)
        elif name == "echo":
            bare = [each for each in arguments if each not in ("-n", "-e")]
            text = " ".join(bare) + ("" if "-n" in arguments[:1] else "\n")
        elif name == "printf":
            text = arguments[0].replace("\\n", "\n") if arguments else ""
        elif name == "seq":
            text = "".join(f"{number}\n" for number in _sequence(arguments))
        elif name == "id":
            text = f"{self._variables.get('UID') or '0'}\n"
        elif name == "hostname":
            text = self._variables.get("HOSTNAME", "") + "\n"
        if target in ("/dev/stdout", "/dev/stderr", "/proc/1/fd/1"):
            target = ""
        if target:
            self._write(target, text, append=append)
        elif text:
            *whole, last = text.split("\n")
            self._run.lines += [Line(self._now, line) for line in whole]
            if last:
                self._run.lines.append(Line(self._now, last, ends=False))
        return code

    def _write(self, path: str, text: str, *, append: bool) -> None:
        if path == "/dev/null":
            return
        self._files[path] = (self._files.get(path, "") if append else "") + text
        self._keep()

    def _do_true(self, arguments: list[str]) -> int:
        return 0

    def _do_false(self, arguments: list[str]) -> int:
        return 1

    def _do_exit(self, arguments: list[str]) -> int:
        raise _Exit(int(arguments[0]) % 256 if arguments and arguments[0].lstrip("-").isdigit() else 0)

    def _do_sleep(self, arguments: list[str]) -> int:
        seconds = _seconds(arguments)
        if seconds is None:
            raise _ForEver
        self._now += seconds
        return 0

    def _do_wait(self, arguments: list[str]) -> int:
        return 0

    _do_set = _do_export = _do_trap = _do_cd = _do_chmod = _do_sync = _do_wait

    def _do_touch(self, arguments: list[str]) -> int:
        for path in arguments:
            self._write(path, "", append=True)
        return 0

    def _do_mkdir(self, arguments: list[str]) -> int:
        for path in arguments:
            if not path.startswith("-"):
                self._write(path.rstrip("/") + "/.", "", append=True)
        return 0

    def _do_rm(self, arguments: list[str]) -> int:
        paths = [each.rstrip("/") for each in arguments if not each.startswith("-")]
        gone = [each for each in self._files if any(each == path or each.startswith(f"{path}/") for path in paths)]
        for each in gone:
            del self._files[each]
        self._keep()
        return int(not gone and not any(each.startswith("-") and "f" in each for each in arguments))

    def _do_test(self, arguments: list[str]) -> int:
        words = [each for each in arguments if each not in ("]", "]]")]
        if words[:1] == ["!"]:
            return int(self._do_test(words[1:]) == 0)
        if len(words) == 2:
            return int(not self._unary(*words))
        if len(words) == 3:
            return int(not _compares(*words))
        return int(not (len(words) == 1 and words[0]))

    def _unary(self, operator: str, value: str) -> bool:
        if operator == "-z":
            return not value
        if operator == "-n":
            return bool(value)
        below = f"{value.rstrip('/')}/"
        is_folder = any(each.startswith(below) for each in self._files)
        if operator == "-d":
            return is_folder
        if operator == "-s":
            return bool(self._files.get(value))
        return value in self._files or (operator != "-f" and is_folder)


_DAEMONS: Final = frozenset(
    ["pause", "nginx", "httpd", "redis-server", "agnhost", "tail", "top", "sleep-forever", "postgres", "mysqld", "etcd"]
)
"""Commands that are known to run for ever."""


def _sequence(arguments: list[str]) -> range:
    numbers = [int(each) for each in arguments if each.isdecimal()][:3] or [0]
    first, last = (1, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[-1])
    step = numbers[1] if len(numbers) == 3 and numbers[1] else 1
    return range(first, min(last, first + step * _LONGEST) + 1, step)


def _seconds(arguments: list[str]) -> float | None:
    """Return how long `sleep` takes; None: for ever."""
    total = 0.0
    for each in arguments:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", each)
        if found is None:
            return None
        total += float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]
    return total if arguments else None


def _compares(left: str, operator: str, right: str) -> bool:
    if operator in ("=", "=="):
        return left == right
    if operator == "!=":
        return left != right
    try:
        a, b = int(left), int(right)
    except ValueError:
        return False
    return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}.get(operator, False)
