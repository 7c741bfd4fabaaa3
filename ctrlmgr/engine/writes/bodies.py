"""The body of a create or update, decoded for each attempt at the write."""

from __future__ import annotations

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.options import Body
from ctrlmgr.engine.writes.request import Request


class Bodies:
    """A request's body, decoded once for each attempt, because an attempt uses it up."""

    def __init__(self, request: Request, body: Body) -> None:
        """Take the body as it came."""
        request.sent = body
        self._request = request
        self._body = body
        self._taken = False
        self.first: Unstructured = {}
        """The object, once it has been read."""

    def read(self) -> None:
        """Decode it for the first time; raises what decoding raises."""
        request, body = self._request, self._body
        self.first = request.plan.decode(body, request.options, request.warnings)

    def take(self) -> Unstructured:
        """Return the object, to be used up."""
        if not self._taken:
            self._taken = True
            return self.first
        return self._request.plan.decode(self._body, self._request.options, [])
