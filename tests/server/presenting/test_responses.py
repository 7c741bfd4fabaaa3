import pytest

from ctrlmgr.server.presenting.responses import warnings


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([], []),
        (["a", "", "b", "a"], ["a", "b"]),
        (["a" * 4096], ["a" * 4096]),
        (["a" * 4097], ["a" * 256]),
        (["a" * 4095, "bb", "c"], ["a" * 256, "bb", "c"]),
        ([f"{number:04}" * 100 for number in range(50)], [f"{number:04}" * 64 for number in range(16)]),
        (
            [*(f"{number:02}" * 127 for number in range(18)), "short"],
            [f"{number:02}" * 127 for number in range(17)],
        ),
    ],
)
def test_warnings_are_sent_up_to_the_limit(texts: list[str], told: list[str]) -> None:
    assert warnings(texts) == [(b"warning", b'299 - "%s"' % each.encode()) for each in told]


def test_a_warning_cannot_break_its_header() -> None:
    assert warnings(['a "b"\\é', "a\r\nset-cookie: c=d", "\x00"]) == [(b"warning", '299 - "a \\"b\\"\\\\é"'.encode())]
