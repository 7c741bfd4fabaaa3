import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.api.quantity import WHOLE, Quantity, canonical, parse, plus, rounded_up, total


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0"),
        ("0.0Gi", "0"),
        ("1", "1"),
        ("+1000m", "1"),
        ("-1.5", "-1500m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("0.500", "500m"),
        ("1.500", "1.500"),
        ("1.50", "1500m"),
        ("1.000", "1"),
        ("1000m", "1"),
        ("100m", "100m"),
        ("1000", "1k"),
        ("10000", "10k"),
        ("12345", "12345"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("512", "512"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("1000Ki", "1000Ki"),
        ("1.0001Ki", "1024102400u"),
        ("100Ei", "9223372036854775807"),
        ("100E", "100E"),
        ("1000E", "1000E"),
        ("2048Ki", "2Mi"),
        ("1e3", "1e3"),
        ("12E2", "1200"),
        ("15e2", "1500"),
        ("1E", "1E"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("1e999999999", "1e999999999"),
        ("1e-999999999", "1e-9"),
    ],
)
def test_canonical_form(text: str, written: str) -> None:
    assert canonical(text) == written


@pytest.mark.parametrize(
    "text", ["", "1K", "1ki", "1 Gi", "1e", "e", "1.2.3", "1..", "-5-3", "e-10", ".n-1", "--1", "0x1", "١", "1" * 5000]
)
def test_an_invalid_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_amounts_compare_across_notations() -> None:
    assert parse("1Gi") == parse("1024Mi") == (1 << 30) * WHOLE
    assert parse("1") == parse("1000m") == parse("1e0")
    assert parse("100m") < parse("0.2") < parse("1")


@pytest.mark.parametrize(("text", "rounded"), [("1u", "1m"), ("1500u", "2m"), ("0.1Ki", "0.1Ki"), ("-1u", "0")])
def test_rounding_up_to_milli(text: str, rounded: str) -> None:
    assert rounded_up(text, 10**6) == rounded


@pytest.mark.parametrize(
    ("amounts", "sum_"), [([], "0"), (["500m", "0.5"], "1"), (["1Gi", "512Mi"], "1536Mi"), (["1", "1Gi"], "1073741825")]
)
def test_sums(amounts: list[str], sum_: str) -> None:
    assert total(amounts) == sum_


@given(st.from_regex(r"\A[+-]?[0-9]{1,12}(\.[0-9]{1,9})?([KMGTPE]i|[numkMGTPE]?|e-?[0-9]{1,2})\Z"))
def test_formatting_keeps_the_amount(text: str) -> None:
    written = canonical(text)
    assert canonical(written) == written
    assert parse(written) == parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("abc", "quantities must match the regular expression "), ("1Kb", "quantities must"), ("1K", "unable to parse")],
)
def test_errors_of_invalid_quantities_have_gos_text(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        canonical(text)


_ADDED = [
    "0",
    "1",
    "0.5",
    "1.500",
    "999m",
    "1024",
    "512Mi",
    "1Gi",
    "1.0001Ki",
    "1e3",
    "15e2",
    "4Ei",
    "100E",
    "1n",
    "-1",
]


@given(st.lists(st.sampled_from(_ADDED), min_size=1, max_size=8))
def test_sums_of_parsed_quantities_equal_sums_of_texts(amounts: list[str]) -> None:
    total, text = Quantity.read(amounts[0]), amounts[0]
    for each in amounts[1:]:
        total, text = total.plus(Quantity.read(each)), plus(text, each)
        assert (total.text, total.amount) == (text, parse(text))


@pytest.mark.parametrize("text", [".", "+", "-", "-0", "e3", "E", "m", "Ki", ".Ki", "e-9", "0e-30"])
def test_a_quantity_without_digits_is_zero(text: str) -> None:
    assert (parse(text), canonical(text)) == (0, "0")


@pytest.mark.parametrize(
    ("text", "problem"),
    [("e-10", "unable to parse numeric part of quantity"), ("-5-3", "unable to parse quantity's suffix")],
)
def test_errors_describe_an_invalid_quantity(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        canonical(text)
