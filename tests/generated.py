"""Generates files from declarations in the code: `settings.toml` and the tables of `docs/`.

`scripts/generate` writes the generated files; a test compares the files with their expected content.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine

from ctrlmgr.cli.operators.run import OPTIONS
from ctrlmgr.cli.options import LEADER_ELECTION
from ctrlmgr.controllers import registry
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.features.guards import GUARDS
from ctrlmgr.eventlog import database_schema
from ctrlmgr.kinds.builtin import declared
from ctrlmgr.settings import SWITCHES, Declaration, Setting, declarations, flags, plain_default, variable
from ctrlmgr.settings.kubernetes_flags.translated_flags import meaning_texts
from ctrlmgr.settings.kubernetes_flags.upstream_flags import KUBE_APISERVER, KUBE_CONTROLLER_MANAGER

ROOT = Path(__file__).parents[1]

_SETTINGS_HEAD = """\
# Every setting of ctrlmgr at its default. Copy what you change into a file of your own and pass it with
# `--settings FILE` (or CTRLMGR_SETTINGS=FILE). A flag beats the variable CTRLMGR_SECTION_KEY, which beats the file.
# `ctrlmgr settings` prints what is in force and where each value came from.
#
# Written by scripts/generate from what the settings declare.
"""

_SCHEMA_HEAD = "The newest schema, for a new database. Written by scripts/generate from what the migrations make."


def files() -> Iterator[tuple[Path, str]]:
    """Yield the path and the expected content of each generated file."""
    yield ROOT / "settings.toml", settings_toml()
    yield ROOT / "migrations" / database_schema.SQLITE_SCHEMA, sqlite_schema()
    yield ROOT / "docs" / "settings.md", with_table(ROOT / "docs" / "settings.md", "settings", settings_tables())
    cli = ROOT / "docs" / "cli.md"
    served = with_table(cli, "run", run_flags(), with_table(cli, "serve", serve_flags()))
    yield cli, with_table(cli, "settings flags", settings_flags(), served)
    yield ROOT / "docs" / "controllers.md", with_table(ROOT / "docs" / "controllers.md", "controllers", controllers())
    page = ROOT / "docs" / "kubernetes-flags.md"
    older = with_table(page, "older", older_flags())
    for program, names in (("kube-apiserver", KUBE_APISERVER), ("kube-controller-manager", KUBE_CONTROLLER_MANAGER)):
        older = with_table(page, program, upstream_flags(names), older)
    yield page, older
    unused = ROOT / "docs" / "stored-only.md"
    kinds = with_table(unused, "kinds", unused_kinds())
    gated = with_table(unused, "fields", gated_fields(), kinds)
    yield unused, gated


def with_table(page: Path, name: str, table: str, text: str | None = None) -> str:
    """Return a page in which the text between two marks is replaced; if `text` is given, it is used instead of the
    page's content.
    """
    text = page.read_text(encoding="utf-8") if text is None else text
    begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->\n"
    assert begin in text, f"{page} has no mark {begin!r}"
    head, _, rest = text.partition(begin)
    return head + begin + table + end + rest.partition(end)[2]


def sqlite_schema() -> str:
    """Return the SQL statements of all database migrations together."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        database_schema.run_migrations(connection)
        made = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        statements = [str(statement).strip() for (statement,) in made]
        oldest = database_schema.oldest_supported(connection)
    engine.dispose()
    statements += [
        f"INSERT INTO alembic_version (version_num) VALUES ('{database_schema.LATEST}')",
        f"INSERT INTO schema_support (oldest) VALUES ('{oldest}')",
    ]
    return f"-- {_SCHEMA_HEAD}\n" + database_schema.BETWEEN_STATEMENTS.join(statements) + "\n"


def settings_toml() -> str:
    """Return the content of settings.toml, with every setting, its default and its description."""
    tables: list[str] = []
    parts = [_SETTINGS_HEAD]
    for section, group in _sections():
        lines = [f"[{section}]"] if section else []
        for each in group:
            value = plain_default(each)
            comment = textwrap.wrap(each.setting.text, 117, break_on_hyphens=False)
            if isinstance(value, dict):
                tables.append("\n".join([*(f"# {line}" for line in comment), f"[{each.key}]", *_rows(value)]))
            else:
                lines += [*(f"# {line}" for line in comment), f"{each.key.rpartition('.')[2]} = {_inline(value)}"]
        parts.append("\n".join(lines))
        parts += tables
        tables.clear()
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def settings_tables() -> str:
    """Return the table for docs/settings.md, with all settings."""
    lines = []
    for section, group in _sections():
        lines += [
            "",
            f"## `[{section}]`" if section else "## Top level",
            "",
            "| key | default | variable | flag | |",
            "|---|---|---|---|---|",
        ]
        for each in group:
            flag = f"`{each.setting.flag}`" if each.setting.flag else ""
            text = each.setting.text.replace("|", "\\|")
            lines.append(
                f"| `{each.key}` | `{_inline(plain_default(each))}` | `{variable(each.key)}` | {flag} | {text} |"
            )
    return "\n".join([*lines, "", ""])


def serve_flags() -> str:
    """Return the table of flags for settings in docs/cli.md."""
    flags = [(each.flag, each.metavar, each.help) for each in _with_flags()]
    switches = [(flag, "", text) for texts in SWITCHES.values() for flag, text in texts.items()]
    rows = [f"| `{flag}{' ' + metavar if metavar else ''}` | {text} |" for flag, metavar, text in (*flags, *switches)]
    return "\n".join(["", "| option | |", "|---|---|", *rows, "", ""])


def settings_flags() -> str:
    """Return the sentence of docs/cli.md that names these commands."""
    # Each command is on a separate line, so that two branches that add one do not conflict.
    names = ",\n".join(f"`{each.flag} {each.metavar}`" for each in _with_flags())
    return f"\nIt takes the flags of `serve` that are settings:\n{names}.\n\n"


def run_flags() -> str:
    """Return the sentence of docs/cli.md with the options that `run` shares with `serve`."""
    told = [declarations()[key].setting for key in (*LEADER_ELECTION, *OPTIONS)]
    names = ",\n".join(f"`{each.flag} {each.metavar}`" for each in told)
    return f"\nLeader election and the options of controllers are as in `serve`:\n{names}.\n\n"


OF_THE_COMMAND = {
    "--help": "Prints the help.",
    "--kubeconfig": "Runs the controllers alone, against the cluster of this file.",
    "--master": "Runs the controllers alone, against the API server at this URL.",
    "--use-service-account-credentials": "With `--kubeconfig`, each controller writes as its own service account. "
    "Without it, controllers always do, and `serve` refuses `false`.",
    "--version": "Prints the version.",
}
"""Flags of Kubernetes' programs that are options of `ctrlmgr serve` but have no setting."""


def upstream_flags(names: Iterable[str]) -> str:
    """Return the table in docs/kubernetes-flags.md with the flags of one of Kubernetes' programs."""
    settings = {flag: f"The setting `{key}`." for key, flag in flags().items()}
    texts = {**OF_THE_COMMAND, **dict(meaning_texts()), **settings}
    return "\n".join(["", "| flag | in `ctrlmgr serve` |", "|---|---|", *_flag_rows(names, texts), "", ""])


def older_flags() -> str:
    """Return the table in docs/kubernetes-flags.md with the flags that Kubernetes has removed."""
    texts = dict(meaning_texts())
    older = texts.keys() - KUBE_APISERVER - KUBE_CONTROLLER_MANAGER
    return "\n".join(["", "| flag | in `ctrlmgr serve` |", "|---|---|", *_flag_rows(older, texts), "", ""])


def _flag_rows(names: Iterable[str], texts: Mapping[str, str]) -> list[str]:
    return [f"| `{name}` | {texts[name]} |" for name in sorted(names)]


def _with_flags() -> list[Setting]:
    return [each.setting for each in declarations().values() if each.setting.flag]


def controllers() -> str:
    """Return the table of controllers for docs/controllers.md."""
    lines = ["", "| controller | alias | what it does |", "|---|---|---|"]
    for each in sorted(registry.ALL, key=lambda each: each.name):
        aliases = ", ".join(f"`{alias}`" for alias in each.aliases)
        off = "" if each.enabled_by_default else " (off by default)"
        lines.append(f"| `{each.name}` | {aliases} | {each.does}{off} |")
    return "\n".join([*lines, "", ""])


def unused_kinds() -> str:
    """Return the table of kinds in docs/stored-only.md."""
    lines = ["", "| kind | what does not happen |", "|---|---|"]
    unused = [each for each in declared() if each.unused]
    lines += [f"| `{each.kind}` (`{each.api_version}`) | {each.unused} |" for each in unused]
    return "\n".join([*lines, "", ""])


def gated_fields() -> str:
    """Return the table of fields in docs/stored-only.md."""
    lines = ["", "| feature gate | fields that are dropped |", "|---|---|"]
    off = [
        (guard.gate, owner, guard.fields) for owner, all_ in GUARDS.items() for guard in all_ if not is_on(guard.gate)
    ]
    for gate, owner, fields in sorted(off):
        paths = ", ".join(f"`{owner}.{'.'.join(steps).replace('.[]', '[]')}`" for steps in fields)
        lines.append(f"| `{gate}` | {paths} |")
    return "\n".join([*lines, "", ""])


def _sections() -> Iterator[tuple[str, Iterator[Declaration]]]:
    return groupby(declarations().values(), key=lambda each: each.key.rpartition(".")[0])


def _rows(table: dict[str, Any]) -> list[str]:
    names = {key: key if re.fullmatch(r"[a-z_]+", key) else json.dumps(key) for key in table}
    return [f"{names[key]} = {_inline(value)}" for key, value in table.items()]


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        rows = ", ".join(
            f"{key if re.fullmatch(r'[a-z_]+', key) else json.dumps(key)} = {_inline(item)}"
            for key, item in value.items()
        )
        return "{ " + rows + " }"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    for path, content in files():
        if path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")
            sys.stderr.write(f"wrote {path.relative_to(ROOT)}\n")
