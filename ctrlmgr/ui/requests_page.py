"""Returns the newest audited requests, including refused requests and reads.

Guarantees: at most `_MOST` requests are returned, and their bodies are not included. Requests for objects or paths that
the user may not see are omitted. If the process does not store requests, the response says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.clock import parse_time
from ctrlmgr.inspection.audited_requests import requests_if_kept
from ctrlmgr.inspection.queries import audit_questions
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.visibility import Visibility

_MOST: Final = 200
_LOOKED_AT: Final = 2000
"""Number of newest stored requests among which the requests that the user may see are searched."""
_FILTERS: Final = ("user", "verb", "resource", "namespace", "name")
_COLUMNS: Final = (
    *("receivedAt", "user", "verb", "what", "namespace", "name", "code", "why", "milliseconds", "source", "id"),
)
"""The names that the page gives to the columns of the query `audit`."""


class Requests:
    """Reads the audited requests that the process with this data_dir stores."""

    def __init__(self, data_path: Path | None) -> None:
        """Create an instance that reads the database below `data_path`; None means that requests are not stored."""
        self._data_path = data_path

    def newest(self, parameters: Parameters) -> dict[str, Any]:
        """Return the newest audited requests.

        The parameters select a user, a verb, a resource or an object, or only refused requests.
        """
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
        requests = [each for row in rows if _is_seen(each := _request_row(row), parameters.visibility)]
        return {"kept": True, "requests": requests[:_MOST]}


def _is_seen(request: dict[str, Any], visibility: Visibility) -> bool:
    """Return whether the user may see the object of a request."""
    what: str = request["what"]
    if what.startswith("/"):
        return visibility.reads(what.partition("?")[0])
    return visibility.sees(Resource.parse(what.partition("/")[0]), Key(request["namespace"], request["name"]))


def _request_row(row: tuple[Any, ...]) -> dict[str, Any]:
    fields = dict(zip(_COLUMNS, row, strict=True))
    return {**fields, "receivedAt": parse_time(fields["receivedAt"])}
