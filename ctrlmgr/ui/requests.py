"""What was asked of the server: the newest requests that were audited, also those that were refused or only read.

Guarantees: at most `_MOST` of them are told at a time, and nothing of what they hold; none that is about an object or
a path that may not be seen. Where none are kept, that is what is told.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.clock import parse_time
from ctrlmgr.inspection.questions import audit_questions
from ctrlmgr.inspection.requests import requests_if_kept
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.visibility import Visibility

_MOST: Final = 200
_LOOKED_AT: Final = 2000
"""Requests among which those are looked for that may be seen."""
_FILTERS: Final = ("user", "verb", "resource", "namespace", "name")
_COLUMNS: Final = (
    *("receivedAt", "user", "verb", "what", "namespace", "name", "code", "why", "milliseconds", "source", "id"),
)
"""What the columns of the question `audit` are called here."""


class Requests:
    """Tells of the requests that a process with this data_dir keeps."""

    def __init__(self, data_path: Path | None) -> None:
        """Read what is kept below `data_path`; None: nothing is."""
        self._data_path = data_path

    def newest(self, parameters: Parameters) -> dict[str, Any]:
        """Return the newest requests, of a user, a verb, a resource or an object if so asked, or those refused."""
        if self._data_path is None:
            return {"kept": False, "requests": []}
        given = {name: parameters.text(name, "") or "-" for name in _FILTERS}
        given["refused"] = parameters.choice("refused", ("no", "yes"))
        question = audit_questions()["audit"]
        with requests_if_kept(self._data_path) as database:
            if database is None:
                return {"kept": False, "requests": []}
            values = question.bind({**given, "limit": str(_LOOKED_AT)}, int)
            rows = database.query(question.statement, values).rows
        told = [each for row in rows if _is_seen(each := _told(row), parameters.visibility)]
        return {"kept": True, "requests": told[:_MOST]}


def _is_seen(request: dict[str, Any], visibility: Visibility) -> bool:
    """Whether what a request was about may be seen."""
    what: str = request["what"]
    if what.startswith("/"):
        return visibility.reads(what.partition("?")[0])
    return visibility.sees(Resource.parse(what.partition("/")[0]), Key(request["namespace"], request["name"]))


def _told(row: tuple[Any, ...]) -> dict[str, Any]:
    fields = dict(zip(_COLUMNS, row, strict=True))
    return {**fields, "receivedAt": parse_time(fields["receivedAt"])}
