from __future__ import annotations

import pytest

from ctrlmgr.controllers import registry
from tests.conformance import PARTS, Part, lacking

IN_THE_MAKING = {
    "--authorization-mode",
    "--allow-privileged",
    "--pvclaimbinder-sync-period",
    "--audit-policy-file",
    "--audit-log-path",
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_server_knows_the_flags_of_the_setup(part: Part) -> None:
    assert {flag.partition("=")[0] for flag in lacking(part.flags)} <= IN_THE_MAKING


def test_an_unknown_flag_is_named() -> None:
    assert lacking(["--listen=x", "--no-such-flag=1"]) == ["--no-such-flag=1"]


@pytest.mark.parametrize("name", ["scenarios", "workloads", "crd"])
def test_the_recorded_controllers_exist(name: str) -> None:
    (flag,) = [each for each in PARTS[name].flags if each.startswith("--controllers=")]
    wanted = flag.partition("=")[2].split(",")
    assert len(registry.enabled(wanted).descriptors) == len(wanted)
