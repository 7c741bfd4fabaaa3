"""Tests of the example of a complete operator: its code is short, and the operator has all features
of the framework.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctrlmgr import Context, Metadata
from ctrlmgr.errors import Forbidden
from ctrlmgr.testing import Harness
from examples import website
from examples.website import ConfigMap, Website, WebsiteSpec, app

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dark"}}


@pytest.fixture
def cluster() -> Harness:
    return Harness(app, nodes=1)


def site(**spec: object) -> Website:
    return Website(metadata=Metadata(name="blog"), spec=WebsiteSpec(text="hello", **spec))  # type: ignore[arg-type]  # of any field


def ready(cluster: Harness) -> tuple[str, str]:
    found = cluster.get(Website, "blog")
    assert found is not None
    condition = next((each for each in found.status.conditions if each.type == "Ready"), None)
    return ("", "") if condition is None else (condition.status, condition.reason)


def test_the_example_has_at_most_a_hundred_lines() -> None:
    assert len(Path(website.__file__).read_text().splitlines()) <= 100


def test_three_children_are_restored_and_the_status_follows_them(cluster: Harness) -> None:
    cluster.create(site(replicas=2))
    cluster.until(lambda: ready(cluster) == ("True", "Replicas"))
    assert {len(cluster.list(kind)) for kind in (ConfigMap, "apps/v1/Deployment", "v1/Service")} == {1}
    cluster.delete("v1/Service", "blog")
    cluster.settle()
    assert cluster.get("v1/Service", "blog") is not None


def test_another_kind_is_watched(cluster: Harness) -> None:
    cluster.create(site(theme="dark"))
    cluster.settle()
    assert ready(cluster) == ("False", "NoTheme")
    cluster.create(SECRET)
    cluster.until(lambda: ready(cluster) == ("True", "Replicas"))


def test_admission_refuses_and_allows_removing_finalizers(cluster: Harness) -> None:
    with pytest.raises(Forbidden, match="at most five replicas"):
        cluster.create(site(replicas=6), user="alice")
    cluster.create(site(replicas=6))
    cluster.settle()
    cluster.delete(Website, "blog", user="alice")
    cluster.settle()
    assert cluster.get(Website, "blog") is None
    assert [each.reason for each in cluster.events(Website, "blog")] == ["Closed"]


def test_the_example_reconciles_every_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, function = list[int](), website.website_controller.function

    def counted(obj: Website, context: Context) -> Any:
        calls.append(context.now())
        return function(obj, context)

    monkeypatch.setattr(website.website_controller, "function", counted)
    cluster = Harness(app)
    cluster.create(site(replicas=0))
    cluster.advance(300)
    before = len(calls)
    cluster.advance(301)
    assert len(calls) == before + 1
