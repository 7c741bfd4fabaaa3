"""Tests of `--runtime-config`: versions that can be switched on, and settings that are refused."""

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.kinds.runtime_config import chosen_versions, optional_versions

INTERNAL, MIGRATION = "internal.apiserver.k8s.io/v1alpha1", "storagemigration.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("texts", "on", "off"),
    [
        ((), (), (INTERNAL, MIGRATION)),
        (("",), (), (INTERNAL, MIGRATION)),
        ((f"{INTERNAL}=true",), (INTERNAL,), (MIGRATION,)),
        ((INTERNAL,), (INTERNAL,), (MIGRATION,)),
        (("api/all=true",), (INTERNAL, MIGRATION), ()),
        (("api/beta=true",), (MIGRATION,), (INTERNAL,)),
        (("api/alpha=true", f"{MIGRATION}=false"), (INTERNAL,), (MIGRATION,)),
        ((f"{INTERNAL}=false", "api/all=true"), (MIGRATION,), (INTERNAL,)),
        (("api/beta=false", "api/all=true"), (INTERNAL,), (MIGRATION,)),
        (("v1=true", "apps/v1=true", "api/ga=true"), (), (INTERNAL, MIGRATION)),
        (("batch/v1beta1=false",), (), (INTERNAL, MIGRATION)),
    ],
)
def test_versions_are_chosen(texts: tuple[str, ...], on: tuple[str, ...], off: tuple[str, ...]) -> None:
    chosen = chosen_versions(texts)
    assert set(on) <= set(chosen) <= set(optional_versions())
    assert not set(off) & set(chosen)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{INTERNAL}=maybe", f"invalid value of {INTERNAL}=maybe; it must be true or false"),
        ("apps/v1=false", "apps/v1 cannot be false; ctrlmgr always serves this version"),
        ("api/v1=false", "api/v1 cannot be false; ctrlmgr always serves this version"),
        ("api/ga=false", "api/ga cannot be false; ctrlmgr always serves these versions"),
        (
            "batch/v1beta1=true",
            f"ctrlmgr has no version batch/v1beta1; it can switch on {', '.join(optional_versions())}",
        ),
    ],
)
def test_settings_without_effect_are_refused(text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        chosen_versions([text])
    assert str(refused.value) == f"--runtime-config: {problem}"
