from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.api.object import Object
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.selectors.label_selector_lexer import MOST_REQUIREMENTS
from ctrlmgr.engine.selectors.label_selector_parser import Requirement
from ctrlmgr.errors import BadRequest
from tests.engine.stage import builtin_kinds

# The objects of the recorded corpus.
LABELS = {
    "o0": {},
    "o1": {"a": "1"},
    "o2": {"a": "2", "b": "x"},
    "o3": {"a": "", "c": "y"},
    "o4": {"b": "x", "example.com/d": "z"},
    "o5": {"n": "12", "in": "notin"},
}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", "o0 o1 o2 o3 o4 o5"),
        ("a=1", "o1"),
        ("a==2", "o2"),
        ("a!=1", "o0 o2 o3 o4 o5"),
        ("a", "o1 o2 o3"),
        ("!a", "o0 o4 o5"),
        ("a in (1,2)", "o1 o2"),
        ("a in (1)", "o1"),
        ("a notin (1,2)", "o0 o3 o4 o5"),
        ("b=x,a", "o2"),
        ("a=2,b=x", "o2"),
        ("a=1,a=2", ""),
        ("a=", "o3"),
        ("a=,c", "o3"),
        ("example.com/d=z", "o4"),
        (" a = 1 , b!=x", "o1"),
        ("a in ()", "o3"),
        ("a in (,1)", "o1 o3"),
        ("a in (1,)", "o1 o3"),
        ("a in (1,,2)", "o1 o2 o3"),
        ("n>11", "o5"),
        ("n > 12", ""),
        ("n<13,n>5", "o5"),
        ("a<2", "o1"),
        ("in=notin", "o5"),
        ("in in (in,notin)", "o5"),
        ("!b,!in", "o0 o1 o3"),
        ("a=1\0,a=2", ""),  # a zero byte after a word is ignored
    ],
)
def test_label_selectors_match_like_kubernetes(text: str, selected: str) -> None:
    selector = LabelSelector.parse(text)
    assert [name for name, labels in LABELS.items() if selector.matches(labels)] == selected.split()
    assert selector.is_empty == (not text)


def test_a_nul_byte_before_a_token_ends_a_selector() -> None:
    assert LabelSelector.parse("\0a in (").is_empty
    assert LabelSelector.parse("a=1 \0b in (").requirements == LabelSelector.parse("a=1").requirements


UNPARSABLE = "unable to parse requirement: "
NOT_A_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a in 1", f"{UNPARSABLE}found '1' expected: '('"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("bad key!=x", f"{UNPARSABLE}found 'key', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=bad value!", "found 'value', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("!", f"{UNPARSABLE}found '', expected: identifier"),
        ("!a=1", "found '=', expected: ',' or 'end of string'"),
        ("!=a", "found '!=', expected: !, identifier, or 'end of string'"),
        ("a in (b", f"{UNPARSABLE}found '', expected: ',' or ')'"),
        ("a in (=)", f"{UNPARSABLE}found '=', expected: ',', ')' or identifier"),
        ("a in (b,=)", f"{UNPARSABLE}found '=', expected: ',', or identifier"),
        ("a in (b c)", f"{UNPARSABLE}found 'c', expected: ',' or ')'"),
        ("a=(", f"{UNPARSABLE}found '(', expected: identifier"),
        (
            "a>1,b<z",
            f"{UNPARSABLE}values[0]: Invalid value: \"z\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("a>9223372036854775808", f'{UNPARSABLE}values[0]: Invalid value: "9223372036854775808": for'),
        ("-a=1", f'{UNPARSABLE}<nil>: Invalid value: "-a": {NOT_A_KEY}'),
        ("a=-b", f'{UNPARSABLE}values[0][a]: Invalid value: "-b": a valid label must be an empty string'),
        ("a in (-b,-c)", f'{UNPARSABLE}[values[0][a]: Invalid value: "-b": a valid label'),
    ],
)
def test_invalid_label_selectors_have_kubernetes_errors(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        LabelSelector.parse(text)
    assert str(refused.value).startswith(message)


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "1", "2", "x"])
REQUIREMENTS = st.one_of(
    st.builds(Requirement, KEYS, st.sampled_from(["=", "==", "!="]), st.tuples(VALUES)),
    st.builds(Requirement, KEYS, st.sampled_from(["in", "notin"]), st.lists(VALUES, min_size=1).map(tuple)),
    st.builds(Requirement, KEYS, st.sampled_from(["exists", "!"]), st.just(())),
)


def meets(labels: dict[str, str], requirement: Requirement) -> bool:
    key, operator, values = requirement
    if operator in ("exists", "!"):
        return (key in labels) is (operator == "exists")
    return (labels.get(key) in values) is (operator in ("=", "==", "in"))


@given(st.lists(REQUIREMENTS), st.dictionaries(KEYS, VALUES))
def test_a_selector_is_the_conjunction_of_its_requirements(
    requirements: list[Requirement], labels: dict[str, str]
) -> None:
    expected = all(meets(labels, each) for each in requirements)
    assert LabelSelector(requirements).matches(labels) is expected


def pod(name: str, namespace: str = "shop") -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": "u"}
    return Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata})


def phase(obj: Object) -> dict[str, str]:
    return {"status.phase": "Running" if obj.name == "web" else "", "spec.host": "a,b=c\\d"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        (",", True),
        ("metadata.name=web", True),
        ("metadata.name==web", True),
        ("metadata.name=db", False),
        ("metadata.name!=db", True),
        ("metadata.name!=web", False),
        ("metadata.namespace=shop,metadata.name=web", True),
        ("metadata.namespace=other", False),
        ("status.phase=Running", True),
        ("status.phase!=Running", False),
        ("status.phase=Running,metadata.name!=web", False),
        ("status.missing=", True),
        ("status.missing!=", False),
        (r"spec.host=a\,b\=c\\d", True),
        (r"spec.host!=a\,b\=c\\d", False),
    ],
)
def test_field_selectors_match_like_kubernetes(text: str, matches: bool) -> None:
    assert FieldSelector.parse(text).matches(pod("web"), phase) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "invalid selector: 'nonsense'; can't understand 'nonsense'"),
        ("a=1,status.phase", "invalid selector: 'a=1,status.phase'; can't understand 'status.phase'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=b\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_invalid_field_selectors_have_kubernetes_errors(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        FieldSelector.parse(text)
    assert str(refused.value) == message


class CountingString(str):
    """A string that counts how often it is hashed or compared."""

    uses = 0

    def __hash__(self) -> int:
        CountingString.uses += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        CountingString.uses += 1
        return super().__eq__(other)


@pytest.mark.parametrize("term", ["a!={}", "!k{}", "a notin (x,{})", "k{}!=x", "a>{}"])
def test_matching_a_thousand_requirements_costs_as_much_as_ten(term: str) -> None:
    labels: dict[str, str] = {CountingString("a"): CountingString("20000"), CountingString("b"): CountingString("y")}

    def uses(requirements: int) -> int:
        selector = LabelSelector.parse(",".join(term.format(number) for number in range(requirements)))
        CountingString.uses = 0
        assert selector.matches(labels)
        return CountingString.uses

    assert uses(MOST_REQUIREMENTS) <= uses(10) + 2


def test_a_selector_with_too_many_requirements_is_refused() -> None:
    with pytest.raises(BadRequest, match="more than 1000 requirements"):
        LabelSelector.parse(",".join(["!a"] * (MOST_REQUIREMENTS + 1)))


@given(st.lists(st.tuples(st.sampled_from(["=", "!="]), st.sampled_from("abc")), max_size=6), st.sampled_from("abc"))
def test_a_field_selector_is_the_conjunction_of_its_terms(terms: list[tuple[str, str]], name: str) -> None:
    selector = FieldSelector.parse(",".join(f"metadata.name{operator}{value}" for operator, value in terms))
    obj = Object.from_dict({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "n"}})
    expected = all((name == value) is (operator == "=") for operator, value in terms)
    assert selector.matches(obj, lambda each: {}) is expected


def test_a_single_name_or_namespace_is_extracted() -> None:
    selector = FieldSelector.parse("metadata.name=a,metadata.namespace=b")
    assert (selector.name, selector.namespace) == ("a", "b")
    selector = FieldSelector.parse("metadata.name!=a")
    assert (selector.name, selector.namespace) == (None, None)


@pytest.mark.parametrize(
    ("plural", "text", "message"),
    [
        (
            "v1/configmaps",
            "data.a=1",
            '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("v1/pods", "status.phase=x,spec.foo=bar", "field label not supported: spec.foo"),
        ("v1/pods", "metadata.labels=x", "field label not supported: metadata.labels"),
        ("batch/v1/jobs", "a=b", 'field label "a" not supported for Job'),
    ],
)
def test_unsupported_fields_are_refused(plural: str, text: str, message: str) -> None:
    group_version, _, resource = plural.rpartition("/")
    group, _, version = group_version.rpartition("/")
    kind = builtin_kinds().find(group, version, resource)
    assert kind is not None
    with pytest.raises(BadRequest) as refused:
        FieldSelector.parse(text).check(kind.strategy.fields, kind.strategy.field_refusal)
    assert str(refused.value) == message
