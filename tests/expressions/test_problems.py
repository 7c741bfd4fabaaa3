from __future__ import annotations

import pytest

from ctrlmgr.expressions.source import CompileError
from tests.expressions.stage import compiled

_OPERANDS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_FORMATTING = "error during formatting"
PROBLEMS = {
    "object.x ==": f"1:12: Syntax error: mismatched input '<EOF>' expecting {_OPERANDS}",
    "n n": "1:3: Syntax error: extraneous input 'n' expecting <EOF>",
    "object.": "1:8: Syntax error: no viable alternative at input '.'",
    "n # 1": "1:3: Syntax error: token recognition error at: '#'",
    "while": "1:1: reserved identifier: while",
    "99999999999999999999": "1:1: invalid int literal",
    "has(object)": "1:5: invalid argument to has() macro",
    "l.all(n.x, true)": "1:8: argument must be a simple name",
    "foo": "1:1: undeclared reference to 'foo' (in container '')",
    ".foo": "1:2: undeclared reference to '.foo' (in container '')",
    "foo(1)": "1:4: undeclared reference to 'foo' (in container '')",
    "object.foo(1)": "1:11: undeclared reference to 'foo' (in container '')",
    "n + 'a'": "1:3: found no matching overload for '_+_' applied to '(int, string)'",
    "object.startsWith(1)": "1:18: found no matching overload for 'startsWith' applied to 'dyn.(int)'",
    "1 == 1.0": "1:3: found no matching overload for '_==_' applied to '(int, double)'",
    "n ? 1 : 2": "1:3: found no matching overload for '_?_:_' applied to '(int, int, int)'",
    "n && true": "1:1: expected type 'bool' but found 'int'",
    "l.all(x, x)": "1:10: expected type 'bool' but found 'int'",
    "[1, 'a']": "1:5: expected type 'int' but found 'string'",
    "{'a': 1, 2: 3}": "1:10: expected type 'string' but found 'int'",
    "thing.x": "1:6: undefined field 'x'",
    "s.x": "1:2: type 'string' does not support field selection",
    "n.map(x, x)": "1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
    "Nope{n: 1}": "1:5: undeclared reference to 'Nope' (in container '')",
    "Thing{n: 'a'}": "1:8: expected type of field 'n' is 'int' but provided type is 'string'",
    "Thing{x: 1}": "1:8: undefined field 'x'",
    "s.matches('[')": "1:11: invalid matches argument",
    "cel.bind(x, 1, x)": "1:1: undeclared reference to 'cel' (in container '')",
    "math.greatest(1, 2)": "1:1: undeclared reference to 'math' (in container '')",
    "base64.encode(b'x')": "1:1: undeclared reference to 'base64' (in container '')",
    "quantity('1').sign()": "1:19: found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'",
    "'%d'.format(['x'])": f"1:14: {_FORMATTING}: decimal clause can only be used on integers, was given string",
    "'%f'.format([1])": f"1:14: {_FORMATTING}: fixed-point clause can only be used on doubles, was given int",
    "'%s %x'.format([1, duration('1s')])": f"1:28: {_FORMATTING}: only integers, byte buffers, and strings can be "
    "formatted as hex, was given google.protobuf.Duration",
    "'%s'.format([[l[?0]]])": f"1:16: {_FORMATTING}: string clause can only be used on strings, bools, bytes, ints, "
    "doubles, maps, lists, types, durations, and timestamps, was given optional_type",
    "'%s %s'.format(['x'])": "1:15: index 1 out of range",
    "'%s'.format(['x', 1])": "1:12: too many arguments supplied to string.format (expected 1, got 2)",
    "'%'.format([])": "1:11: unexpected end of string",
    "'%q'.format([1])": '1:12: could not parse formatting clause: unrecognized formatting clause "q"',
    "'%.5'.format([1.0])": "1:13: could not parse formatting clause: error while parsing precision: could not find end "
    "of precision specifier",
    "matches('[', s)": "1:9: invalid matches argument",
    "duration('x')": "1:10: invalid duration argument",
    "timestamp('x')": "1:11: invalid timestamp argument",
    "1 >= l[?0]": "1:3: found no matching overload for '_>=_' applied to '(int, optional_type(int))'",
    "[dyn(1)].map(x, x)[0] + [1]": "",
}


@pytest.mark.parametrize(("source", "problem"), PROBLEMS.items())
def test_an_invalid_expression_is_refused_with_its_position(source: str, problem: str) -> None:
    if not problem:
        compiled(source)
        return
    with pytest.raises(CompileError) as error:
        compiled(source)
    assert str(error.value).splitlines()[0] == f"ERROR: <input>:{problem}"


def test_all_problems_are_listed_below_their_lines() -> None:
    with pytest.raises(CompileError) as error:
        compiled("thing.x-dash ==\n  foo")
    assert str(error.value).splitlines() == [
        "ERROR: <input>:1:6: undefined field 'x'",
        " | thing.x-dash ==",
        " | .....^",
        "ERROR: <input>:1:9: undeclared reference to 'dash' (in container '')",
        " | thing.x-dash ==",
        " | ........^",
        "ERROR: <input>:2:3: undeclared reference to 'foo' (in container '')",
        " |   foo",
        " | ..^",
    ]


@pytest.mark.parametrize(
    ("source", "type_"),
    [
        ("{'a': [1]}", "map(string, list(int))"),
        ("object.?x", "optional_type(dyn)"),
        ("null", "null"),
        ("[]", "list(dyn)"),
        ("l.map(x, string(x))", "list(string)"),
        ("authorizer", "kubernetes.authorization.Authorizer"),
        ("type(1)", "type(int)"),
        ("true ? l : []", "list(int)"),
        ("object.x + object.y", "dyn"),
        ("object.x - object.y", "dyn"),
        ("object.x[0]", "dyn"),
    ],
)
def test_types_are_formatted_like_kubernetes(source: str, type_: str) -> None:
    assert str(compiled(source).type) == type_


@pytest.mark.parametrize(
    "source",
    ["(" * 5000 + "1" + ")" * 5000, "+".join("1" * 5000), "l" + ".optMap(x, x)" * 60, "[" * 9000, "x" * 200_000],
)
def test_too_deeply_nested_or_too_large_expressions_are_refused(source: str) -> None:
    with pytest.raises(CompileError):
        compiled(source)


def test_a_long_chain_of_conditions_is_not_nested() -> None:
    assert compiled(" && ".join(["n > 0"] * 2000)).evaluate({"n": 1})[0] is True


def test_an_empty_expression_has_no_line() -> None:
    with pytest.raises(CompileError) as caught:
        compiled("")
    assert str(caught.value) == f"ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {_OPERANDS}"
