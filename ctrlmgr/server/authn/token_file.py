"""Authenticates the bearer tokens in a file of kube-apiserver's format; a changed file is reloaded.

Guarantees:
- Tokens are compared by their SHA-256 hashes, so that the duration of a refusal reveals nothing about valid tokens.
- At its start, the server refuses a token file that other users may read.
- The server applies a changed token file at the next check. If the server cannot read the token file, the server logs
  the error, and the previous tokens remain in force.

Each line of the file is `token,user,uid[,"group,group"]` (kube-apiserver's --token-auth-file). A line may contain the
token's hash as `sha256:HEX` instead of the token, so that the file does not reveal the token.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from ctrlmgr.authentication.followed_files import FollowedFiles
from ctrlmgr.authentication.user import Audiences, User, known
from ctrlmgr.caches.memoized import memoized
from ctrlmgr.errors import SettingsError
from ctrlmgr.metrics import FILE_RELOADS
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes
from ctrlmgr.server.authn.union_authenticator import ForAllAudiences

_SETTING = "authentication.token_auth_file"
_HASHED = "sha256:"
_LONGEST_REMEMBERED = 256


class Tokens(ForAllAudiences):
    """A `TokenAuthenticator` for tokens in a file and other fixed tokens. Used on the event loop.

    Only one thread at a time may call `reload`.
    """

    def __init__(self, fixed: Mapping[str, User], file: Path | None = None, audiences: Audiences = ()) -> None:
        """Create an authenticator for the `fixed` tokens, and for the tokens in `file` if the file exists.

        All tokens are valid for `audiences`. Raises `SettingsError` if the file is malformed or other users may read
        it.
        """
        super().__init__(audiences)
        self._fixed = {_digest(token): known(user) for token, user in fixed.items()}
        self._file = file
        self._followed = FollowedFiles(
            "tokens", [file] if file else [], lambda status: FILE_RELOADS.labels(_SETTING, status).inc()
        )
        self._users = {**self._read(), **self._fixed}

    def user(self, token: str) -> User | None:
        """Return the user of `token`; None if the token is unknown."""
        return self._users.get(_digest(token))

    async def user_of(self, token: str, notes: AuthenticationNotes) -> User | None:
        """Return the user of `token`; None if the token is unknown."""
        return self.user(token)

    def reload(self) -> bool:
        """Reload the token file if it has changed; return whether it was reloaded."""
        return self._followed.reload(self._take)

    def _take(self) -> bool:
        self._users = {**self._read(), **self._fixed}
        return True

    def _read(self) -> dict[bytes, User]:
        if self._file is None or not self._file.exists():
            return {}
        try:
            if self._file.stat().st_mode & 0o077:
                raise SettingsError(
                    f"{_SETTING}: other users can read {self._file}, which contains tokens; chmod 600 it"
                )
            with self._file.open(newline="") as lines:
                return dict(_parse(lines, self._file))
        except OSError as error:
            raise SettingsError(f"{_SETTING}: {self._file} cannot be read: {error.strerror}") from error


def _parse(lines: Iterable[str], file: Path) -> Iterable[tuple[bytes, User]]:
    for number, row in enumerate(csv.reader(lines), start=1):
        if not row or row[0].startswith("#"):
            continue
        if not 3 <= len(row) <= 4 or not row[0] or not row[1]:
            raise SettingsError(f'{_SETTING}: {file}:{number}: write token,user,uid or token,user,uid,"group,group"')
        groups = tuple(group.strip() for group in row[3].split(",") if group.strip()) if len(row) == 4 else ()
        yield _stored(row[0], file, number), known(User(row[1], row[2], groups))


def _stored(token: str, file: Path, number: int) -> bytes:
    if not token.startswith(_HASHED):
        return _digest(token)
    try:
        digest = bytes.fromhex(token.removeprefix(_HASHED))
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size:
        raise SettingsError(f"{_SETTING}: {file}:{number}: sha256: must be followed by 64 hexadecimal digits")
    return digest


@memoized(entries=256, longest=_LONGEST_REMEMBERED)  # cached, because consecutive requests often have the same token
def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
