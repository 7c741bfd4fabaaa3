"""Parses the arguments of `ctrlmgr get`: kinds and names, in every form that kubectl accepts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from ctrlmgr.api.resource import Revision
    from ctrlmgr.inspection.database import Database
    from ctrlmgr.inspection.resource_lookup import Named


class RequestedKind(NamedTuple):
    """A requested kind, and the name of the requested object; None means all objects of the kind."""

    named: Named
    name: str | None


def chosen(database: Database, arguments: Sequence[str], at: Revision | None = None) -> list[RequestedKind]:
    """Parse arguments such as `pods`, `pods web-0 web-1`, `pods,services`, `pod/web-0 svc/web` or `all`.

    Only kinds that exist at the revision are accepted. If several kinds and several names are given, each name is
    requested for each kind. Raises `NotFound` if a kind is unknown, and `click.UsageError` if the forms of arguments
    are mixed.
    """
    read = _pairs if any("/" in each for each in arguments) else _all
    return list(read(database, arguments, at))


def _pairs(database: Database, arguments: Sequence[str], at: Revision | None) -> Iterator[RequestedKind]:
    from ctrlmgr.inspection import resource_lookup

    for each in arguments:
        kind, slash, name = each.partition("/")
        if not slash:
            raise click.UsageError(f"KIND/NAME and KIND cannot be mixed; write {each!r} as KIND/NAME")
        if not (kind and name) or "/" in name:
            raise click.UsageError(f"{each!r} is not KIND/NAME")
        yield RequestedKind(resource_lookup.find(database, kind, at), name)


def _all(database: Database, arguments: Sequence[str], at: Revision | None) -> Iterator[RequestedKind]:
    from ctrlmgr.inspection import resource_lookup

    kinds, *wanted = arguments
    of_each: Sequence[str | None] = wanted or [None]
    for named in resource_lookup.find_all(database, kinds, at):
        for name in of_each:
            yield RequestedKind(named, name)
