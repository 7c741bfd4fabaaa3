"""Oracle `conversion-loss`."""

from __future__ import annotations

from typing import Any

from ctrlmgr.engine.request_options import Requester
from ctrlmgr.trial.oracles.conversion_losses import conversion_losses
from tests.trial.oracles.played import OPERATOR, Played, version, widget

OLDER = "/apis/example.com/v1/namespaces/shop/widgets/a"


def schema(*names: str) -> dict[str, Any]:
    fields = {name: {"type": "string"} for name in names}
    return {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}}


def played() -> Played:
    versions = [
        version("v2", schema=schema("color", "shape", "size")),
        version("v1", storage=False, schema=schema("color", "size")),
    ]
    run = Played(versions=versions)
    spec = {"color": "red", "shape": "round", "size": "9"}
    run.send("POST", "/apis/example.com/v2/namespaces/shop/widgets", widget("a", "example.com/v2", spec=spec))
    return run


def test_an_update_through_a_version_without_the_field_is_found() -> None:
    run = played()
    seen = run.send("GET", OLDER).body
    assert "shape" not in seen["spec"]
    run.send("PUT", OLDER, {**seen, "spec": {"color": "blue", "size": "9"}}, requester=Requester(OPERATOR))
    [found] = conversion_losses(run.kept())
    assert found.object == "Widget shop/a"
    assert found.message == "Widget shop/a lost spec.shape in a write of version v1, which has no such field."


def test_a_removal_of_a_declared_field_is_no_loss() -> None:
    run = played()
    newer = OLDER.replace("/v1/", "/v2/")
    removed = run.send("PATCH", newer, {"spec": {"shape": None}}, media_type="application/merge-patch+json")
    assert "shape" not in removed.body["spec"]
    older = run.send("PATCH", OLDER, {"spec": {"size": None}}, media_type="application/merge-patch+json")
    assert older.body["spec"] == {"color": "red"}
    assert conversion_losses(run.kept()) == []


def test_kinds_with_one_version_have_no_losses() -> None:
    run = Played()
    run.user_create(widget("a", spec={"color": "red"}))
    run.user_patch("Widget", "a", {"spec": {"color": None}})
    assert conversion_losses(run.kept()) == []
