"""`ctrlmgr settings`: prints the effective settings and the source of each setting."""

from __future__ import annotations

import json
from typing import Any

import click

from ctrlmgr.cli.options import output_option, takes_settings
from ctrlmgr.settings import Loaded, flags, keys, plain_value


@click.command(short_help="Print the effective settings and the source of each setting.")
@takes_settings(*flags())
@output_option("toml", "json")
def settings(loaded: Loaded, output: str) -> None:
    """Print the effective settings, and the source of each setting: a flag, a variable, the file, or the default.

    The printed output is a valid settings file, except that passwords are masked.

    \b
    ctrlmgr settings
    CTRLMGR_LOG_LEVEL=debug ctrlmgr settings -o json
    """
    click.echo(_json(loaded) if output == "json" else _toml(loaded))


def _json(loaded: Loaded) -> str:
    values = {key: _plain(loaded, key) for key in keys()}
    return json.dumps({key: {"value": values[key], "from": loaded.origins[key]} for key in keys()}, indent=2)


def _toml(loaded: Loaded) -> str:
    lines: list[str] = []
    section = ""
    for key in keys():
        table, _, name = key.rpartition(".")
        if table != section:
            lines += ["", f"[{table}]"]
            section = table
        value = _inline(_plain(loaded, key))
        lines.append(f"{f'{name} = {value}':<52}  # {loaded.origins[key]}")
    return "\n".join(lines)


def _plain(loaded: Loaded, key: str) -> Any:
    """Return a value in a form that TOML and JSON can represent, with passwords masked."""
    from ctrlmgr.logging import mask

    value = plain_value(loaded.settings, key)
    return mask(value) if isinstance(value, str) else value


def _inline(value: Any) -> str:
    """Return a value as inline TOML; JSON strings and numbers are valid TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f" {json.dumps(key)} = {_inline(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
