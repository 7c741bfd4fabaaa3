"""Formats the help of a command with many options.

`--help` describes the most used options; `--help-all` describes all options, in sections.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import click

_OPTIONS: Final = "Options"


class SettingOption(click.Option):
    """The class of command-line options for a setting, or for a flag that is translated into settings."""

    def __init__(self, *arguments: Any, section: str, default_text: str = "", **keywords: Any) -> None:
        """Create an option that `--help-all` lists under the title `section`, with `default_text` after its help.

        If `section` is empty, the option is listed with the command's own options.
        """
        super().__init__(*arguments, **keywords)
        self.section = section
        self.default_text = default_text


class SectionedCommand(click.Command):
    """A command whose `--help` is short, and whose `--help-all` is complete."""

    def __init__(
        self, *arguments: Any, usual: Collection[str], last_sections: Sequence[str] = (), **keywords: Any
    ) -> None:
        """Create a command; the command's `--help` describes the options with the flags in `usual`, in that order.

        `last_sections` are the titles of the sections that `--help-all` describes last, in that order.
        """
        super().__init__(*arguments, **keywords)
        self._usual = (*usual, "--help-all", "--help")
        self._last_sections = last_sections
        text = "Describe all options, in sections."
        flag: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
        self.params.append(click.Option(["--help-all"], **flag, callback=self._print_all, help=text))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the most used options to the help."""
        by_flag = {flag: each for each in self.get_params(ctx) for flag in each.opts}
        _write(ctx, formatter, _OPTIONS, [by_flag[flag] for flag in self._usual])
        formatter.write_paragraph()
        formatter.write_text(f"There are {len(self.get_params(ctx)) - len(self._usual)} more options: see --help-all.")

    def _print_all(self, ctx: click.Context, parameter: click.Parameter, is_given: bool) -> None:
        if not is_given:
            return
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        sections = _sections(self.get_params(ctx))
        first = [title for title in sections if title not in self._last_sections]
        for title in (*first, *filter(sections.__contains__, self._last_sections)):
            _write(ctx, formatter, title, sections[title], shows_default=True)
        click.echo(formatter.getvalue().rstrip("\n"))
        ctx.exit()


def _sections(parameters: Sequence[click.Parameter]) -> dict[str, list[click.Parameter]]:
    """Return the options of each section; options without a section are first."""
    sections: dict[str, list[click.Parameter]] = {_OPTIONS: []}
    for each in parameters:
        title = each.section if isinstance(each, SettingOption) else ""
        sections.setdefault(title or _OPTIONS, []).append(each)
    return sections


def _write(
    ctx: click.Context,
    formatter: click.HelpFormatter,
    title: str,
    parameters: Sequence[click.Parameter],
    *,
    shows_default: bool = False,
) -> None:
    records = []
    for each in parameters:
        names, text = each.get_help_record(ctx) or ("", "")
        default = each.default_text if shows_default and isinstance(each, SettingOption) else ""
        records += [(names, f"{text} {default}".rstrip())] if names else []
    with formatter.section(title):
        formatter.write_dl(records)
