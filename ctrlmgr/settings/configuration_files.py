"""Reads the configuration files whose paths are settings; the files are YAML or JSON in kube-apiserver's formats.

Guarantees: if a file is unreadable, malformed or has unknown fields, the error message is one line, which names the
file and the line. Every part of a file is either used or refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml

from ctrlmgr.errors import SettingsError

T = TypeVar("T")

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_AT = re.compile(r" - at `(?:key in )?\$(.*)`$")


class Document(NamedTuple):
    """A YAML document or a part of such a document, with its line numbers."""

    file: Path
    node: yaml.Node | None
    """The parsed document; None if the file is empty."""
    value: Any

    def refuse(self, problem: str, *path: str | int) -> SettingsError:
        """Return an error for the value at `path`; the error's message contains the file and the line of the value."""
        return SettingsError(f"{self.file}:{_line(self.node, path)}: {problem}")

    def read(self, kind: str, versions: Collection[str], as_type: type[T]) -> T:
        """Return the document as an instance of a struct.

        Raises `SettingsError` if the document has another kind or version, or if a field does not match the struct.
        """
        fields = self.value if isinstance(self.value, dict) else {}
        found, version = fields.get("kind"), fields.get("apiVersion")
        if found != kind:
            raise self.refuse(f"kind must be {kind}, not {found!r}", "kind")
        if version not in versions:
            raise self.refuse(f"apiVersion must be {' or '.join(versions)}, not {version!r}", "apiVersion")
        rest = {key: value for key, value in fields.items() if key not in ("kind", "apiVersion")}
        return self.converted(rest, as_type)

    def converted(self, value: Any, as_type: type[T]) -> T:
        """Return a value of the document as a struct; raises `SettingsError` if the value does not match the struct."""
        try:
            return msgspec.convert(value, as_type)
        except msgspec.ValidationError as error:
            problem = str(error)
            at = _AT.search(problem)
            steps = _STEP.findall(at.group(1)) if at else []
            path = [name or (int(index) if index.isdecimal() else 0) for name, index in steps]
            unknown = re.match(r"Object contains unknown field `(.*?)`", problem)
            where = (*path, unknown.group(1)) if unknown else tuple(path)
            raise self.refuse(_AT.sub("", problem), *where) from error


def _line(node: yaml.Node | None, path: tuple[str | int, ...]) -> int:
    """Return the line number (from 1) of the longest prefix of `path` that exists in the document."""
    if node is None:
        return 1
    line = node.start_mark.line
    for step in path:
        inner: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if getattr(key, "value", None) == step:
                    line, inner = key.start_mark.line, value
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            inner = node.value[step]
            line = inner.start_mark.line
        if inner is None:
            break
        node = inner
    return int(line) + 1


def read_document(file: Path) -> Document:
    """Read a file of YAML or JSON; raises `SettingsError` if it cannot be read or parsed."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "it is not UTF-8"
        raise SettingsError(f"{file}: the file cannot be read: {problem}") from error
    try:
        return Document(file, yaml.compose(text, yaml.SafeLoader), yaml.safe_load(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SettingsError(f"{file}:{line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from error
