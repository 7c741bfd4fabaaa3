import pytest

from ctrlmgr.api.timestamp import canonical_micro_time, canonical_time


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.999999999Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z"),
        ("2026-01-01T23:04:05-05:30", "2026-01-02T04:34:05Z"),
        ("0999-01-02T03:04:05Z", "0999-01-02T03:04:05Z"),
        ("0001-01-01T00:00:00Z", None),
        ("0001-01-01T01:00:00+01:00", None),
    ],
)
def test_times(text: str, written: str | None) -> None:
    assert canonical_time(text) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02T03:04:05.123456+01:00", "2026-01-02T02:04:05.123456Z"),
        ("0001-01-01T00:00:00.000000Z", None),
    ],
)
def test_micro_times(text: str, written: str | None) -> None:
    assert canonical_micro_time(text) == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02t03:04:05z",
        "2026-01-02 03:04:05Z",
        "2026-13-02T03:04:05Z",
        "2026-02-30T03:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:04:05Z\n",
        "2026-01-02T03:04:05+0100",
        "0000-01-02T03:04:05Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "２026-01-02T03:04:05Z",
    ],
)
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r'(?s)parsing time ".*"'):
        canonical_time(text)


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.1234567Z"])
def test_a_micro_time_has_six_decimals(text: str) -> None:
    with pytest.raises(ValueError, match="000000Z07:00"):
        canonical_micro_time(text)
