import pytest

from ctrlmgr.api.remembered import remembered


def test_short_texts_are_remembered_long_ones_are_not() -> None:
    calls: list[str] = []

    @remembered(entries=2, longest=3)
    def doubled(text: str) -> str:
        """Twice."""
        calls.append(text)
        return text * 2

    for text in ("abc", "abc", "abcd", "abcd", "a", "b", "abc"):
        assert doubled(text) == text * 2
    assert calls == ["abc", "abcd", "abcd", "a", "b", "abc"]
    assert doubled.__doc__ == "Twice."


def test_errors_are_not_remembered() -> None:
    calls: list[str] = []

    @remembered(entries=2, longest=3)
    def refused(text: str) -> str:
        calls.append(text)
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="abc"):
            refused("abc")
    assert calls == ["abc", "abc"]
