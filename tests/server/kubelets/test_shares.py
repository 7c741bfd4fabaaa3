"""Tests of the limits on concurrent tunnels: for one user, and for all users together."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from ctrlmgr.authentication.user import MASTERS, User
from ctrlmgr.errors import TooManyRequests
from ctrlmgr.server.kubelets.shares import TunnelShares

JANE, JOE, ADMIN = User("jane"), User("joe"), User("admin", groups=(MASTERS,))


def test_a_user_has_a_share_and_releases_it() -> None:
    shares = TunnelShares(4, 2)
    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(shares.held(JANE))
        with pytest.raises(TooManyRequests), shares.held(JANE):
            pass
        with shares.held(JOE):
            pass
    with shares.held(JANE):
        pass


def test_administrators_are_limited_only_by_the_total() -> None:
    shares = TunnelShares(3, 1)
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(shares.held(ADMIN))
        with pytest.raises(TooManyRequests), shares.held(JOE):
            pass
