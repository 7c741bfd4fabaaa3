"""Asks an API server for the user of a token and for the rights of a user, by TokenReviews and SubjectAccessReviews.

Guarantees: if the API server cannot review a token or a right, the caller's request is refused.

Source: apiserver `pkg/authentication/authenticatorfactory/delegating.go` and `pkg/authorization/authorizerfactory`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.authentication.user import User
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.framework.remote.remote_api import Api

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ANONYMOUS: Final = User("system:anonymous", "", ("system:unauthenticated",))


class AccessReviews(NamedTuple):
    """Reviews users and permissions through one API server."""

    api: Api

    def user_of(self, token: str) -> User | None:
        """Return the user of a token; None if the API server does not accept the token."""
        status = self._reviewed(_TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", {"token": token})
        found = status.get("user", {})
        if not status.get("authenticated"):
            return None
        return User(found.get("username", ""), found.get("uid", ""), tuple(found.get("groups", ())))

    def allows(self, user: User, attributes: Mapping[str, Any]) -> bool:
        """Return whether a user may do something.

        `attributes` maps `resourceAttributes` or `nonResourceAttributes` to this part of a SubjectAccessReview.
        """
        spec = {"user": user.name, "uid": user.uid, "groups": user.groups, **attributes}
        status = self._reviewed(_ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", spec)
        return bool(status.get("allowed"))

    def _reviewed(self, path: str, version: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        body = msgspec.json.encode({"apiVersion": version, "kind": kind, "spec": spec})
        try:
            answer: dict[str, Any] = msgspec.json.decode(self.api.call("POST", path, body))
        except CtrlmgrError:
            return {}
        return answer.get("status") or {}
