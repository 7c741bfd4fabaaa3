"""Tests of a database that hangs: requests that need the database fail within seconds, and reads from the cache
continue to work.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.testing.postgres import PostgresCluster
from tests.e2e.serving import until
from tests.robustness.hung_database import CONFIG_MAPS, served_on_its_own
from tests.robustness.serving import ConfiguredServer

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(600)]


def test_requests_are_refused_and_cached_reads_continue_during_a_hang(tmp_path: Path) -> None:
    with served_on_its_own(tmp_path) as (own, served):
        check_hang(own, served)


def check_hang(own: PostgresCluster, served: ConfiguredServer) -> None:
    served.create(CONFIG_MAPS, {"metadata": {"name": "before"}})
    until(lambda: served.request("GET", "/readyz")[0] == 200)
    own.freeze()
    try:
        code, status = served.request("POST", CONFIG_MAPS, {"metadata": {"name": "meanwhile"}})
        assert code in (503, 504)
        assert status["reason"] in ("ServiceUnavailable", "Timeout")
        code, status = served.request("GET", CONFIG_MAPS)
        assert (code, status["reason"]) == (503, "ServiceUnavailable")
        assert status["details"]["retryAfterSeconds"] == 1
        for _ in range(20):  # more requests than threads that can wait for the database
            code, listed = served.request("GET", f"{CONFIG_MAPS}?resourceVersion=0")
            assert code == 200
            assert "before" in [item["metadata"]["name"] for item in listed["items"]]
        until(lambda: "[-]log failed" in str(served.request("GET", "/readyz")[1]))
        assert served.request("GET", "/livez")[0] == 200
    finally:
        own.thaw()
    until(lambda: served.request("GET", "/readyz")[0] == 200)
    served.create(CONFIG_MAPS, {"metadata": {"name": "after"}})
    code, listed = served.request("GET", CONFIG_MAPS)
    names = [item["metadata"]["name"] for item in listed["items"]]
    assert {"before", "after"} <= set(names)
    assert len(names) == len(set(names))
