from __future__ import annotations

import pytest

from ctrlmgr.expressions.values import EvalError
from tests.expressions.stage import value

TRUE = """
1 + 2 * 3 == 7
-7 / 2 == -3 && -7 % 2 == -1
7u - 2u == 5u
1 < 1.5 && 2u > 1 && 3.0 >= 3u
dyn(1) == 1.0 && dyn(1u) == 1 && dyn(1) != '1'
dyn(true) != 1
{1: 'a'}[1] == 'a' && dyn({1: 'a'})[1.0] == 'a'
!(true in dyn({1: 'a'}))
'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]
'\\u00e9' == 'é' && '\\x41\\101' == 'AA' && r'\\n' == '\\\\n'
size('é') == 1 && size(b'\\xc3\\xa9') == 2 && 'é'.size() == 1
'''a
b'''.size() == 3
0x10 == 16 && 1e3 == 1000.0 && .5 == 0.5
object.a.b == 1 && object['a']['b'] == 1
has(object.a) && !has(object.z) && has(object.none) && !has(object.a.b.c)
object.items[1].n == 2 && object.items.exists(i, i.n == 2) && !object.items.all(i, i.n == 2)
object.items.exists_one(i, i.n == 2) && object.items.existsOne(i, i.n == 2)
object.items.map(i, i.n) == [1, 2] && object.items.map(i, i.n > 1, i.n * 2) == [4]
object.labels.all(k, k.size() == 1) && object.labels.exists(k, v, k == 'x' && v == '1')
l.filter(e, e > 1) == [3, 2] && 3 in l && !(4 in l) && 'x' in object.labels
l.all(i, e, i < 3 && e > 0) && l.transformList(i, e, i * e) == [0, 1, 4]
l.transformList(i, e, i > 0, e) == [1, 2]
{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && {'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}
false && object.z || true
object.z == 1 || true
!(object.z == 1 && false)
[1, 2].exists(i, i / (i - 1) > 1) && ![0, 1].all(i, 1 / i > 1)
true ? true : object.z
object.?a.?b == optional.of(1) && object.?z.?b == optional.none()
object.?z.b.orValue(5) == 5 && object[?'a'].hasValue() && l[?9].orValue(7) == 7
[?object.?z, ?object.?name] == ['web-1'] && {?'k': object.?z} == {}
optional.of(2).optMap(x, x + 1).value() == 3 && optional.none().optFlatMap(x, optional.of(x)) == optional.none()
optional.ofNonZeroValue('') == optional.none() && optional.of(1).or(optional.of(2)).value() == 1
optional.unwrap([optional.of(1), optional.none()]) == [1]
type(n) == int && type('a') == string && type([1]) == list && type(type(1)) == type
int('12') == 12 && int(2.9) == 2 && int(3u) == 3 && uint(3) == 3u && double('1.5') == 1.5
string(1.5) == '1.5' && string(1e21) == '1e+21' && string(true) == 'true' && string(b'a') == 'a' && bool('t')
string(timestamp('2024-02-29T10:00:00.5+02:00')) == '2024-02-29T08:00:00.5Z'
string(duration('1h30m')) == '5400s' && duration('-1.5s').getMilliseconds() == -1500
timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')
timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')
timestamp('2024-03-01T03:00:00Z').getHours('America/New_York') == 22
timestamp('2024-03-01T03:00:00Z').getHours('-02:00') == 1
timestamp('2024-03-01T03:00:00Z').getDayOfYear() == 60 && timestamp('2024-03-03T03:00:00Z').getDayOfWeek() == 0
s.startsWith('he') && s.endsWith('lo') && s.contains('ell') && s.matches('^h.*o$') && matches(s, 'l+')
s.charAt(1) == 'e' && s.charAt(5) == '' && s.indexOf('l') == 2 && s.lastIndexOf('l') == 3 && s.indexOf('l', 3) == 3
s.indexOf('l', 9) == -1 && s.lastIndexOf('l', 9) == -1 && s.lastIndexOf('l', 2) == 2 && s.indexOf('', 9) == 9
s.substring(1, 3) == 'el' && s.substring(3) == 'lo' && s.replace('l', 'L', 1) == 'heLlo' && s.upperAscii() == 'HELLO'
'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'ab'.split('') == ['a', 'b']
['a', 'b'].join('-') == 'a-b' && ' a '.trim() == 'a' && strings.quote('a"b') == '"a\\\\"b"'
'%s %d %.2f %x %b %o %%'.format(['a', 1, 1.5, 255, 5, 8]) == 'a 1 1.50 ff 101 10 %' && '%X'.format(['hi']) == '6869'
'%s'.format([[1, 'a', 2.5, {'k': true}]]) == '[1, "a", 2.500000, {"k":true}]'
'%s'.format([[b'x', null, timestamp('2024-01-01T00:00:00Z')]]) == '[b"x", null, timestamp("2024-01-01T00:00:00Z")]'
'%s'.format([{2: duration('1s'), 'a': double('NaN')}]) == '{"a":"NaN", 2:duration("1s")}' && '%s'.format([0.5]) == '0.5'
'%.1f %f %f %f'.format([1234567.25, 2.5, 'NaN', '-Infinity']) == '1,234,567.2 2.500000 NaN -∞'
'%e %e'.format([1052.032911275, -0.001]) == '1.052033\u202f×\u202f10⁰³ -1.000000\u202f×\u202f10⁻⁰³'
'a12b3'.find('[0-9]+') == '12' && 'a12b3'.findAll('[0-9]+') == ['12', '3'] && 'a12b3'.findAll('[0-9]', 2) == ['1', '2']
'aab'.find('a+?') == 'a' && 'xaay'.find('a*') == '' && 'abab'.findAll('') == ['', '', '', '', '']
l.sum() == 6 && l.min() == 1 && l.max() == 3 && !l.isSorted() && [1, 1, 2].isSorted() && l.indexOf(2) == 2
l.sort() == [1, 2, 3] && l.slice(1, 3) == [1, 2] && [1, 1].distinct() == [1] && [[1], [2]].flatten() == [1, 2]
l.reverse() == [2, 1, 3] && lists.range(3) == [0, 1, 2] && object.items.sortBy(i, -i.n)[0].n == 2
l.first().value() == 3 && l.last().value() == 2
sets.contains(l, [1, 2]) && sets.intersects(l, [9, 1]) && sets.equivalent(l, [1, 2, 3, 3])
url('https://u@[::1]:80/a%2Fb?x=1&x=2').getHostname() == '::1' && url('/a').getEscapedPath() == '/a'
url('https://a:80/?x=1&x=2&y').getQuery() == {'x': ['1', '2'], 'y': ['']} && !isURL('a b')
isIP('::1') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0') && ip('10.0.0.1').isGlobalUnicast()
ip('::1').isLoopback() && ip('fe80::1').isLinkLocalUnicast() && ip('0.0.0.0').isUnspecified() && !ip.isCanonical('::0')
cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.0.0.0/8').containsIP('11.0.0.1') && !isCIDR('10.0.0.0')
string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8' && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')
quantity('1Gi').add(1).compareTo(quantity('1Gi')) == 1 && quantity('1k').asInteger() == 1000 && !isQuantity('x')
quantity('100m').asApproximateFloat() == 0.1 && sign(quantity('-1')) == -1 && !quantity('1.5').isInteger()
semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('v1.2', true).minor() == 2 && !isSemver('1.2')
authorizer.group('apps').resource('x').check('get').allowed() && !authorizer.path('/a').check('put').allowed()
authorizer.group('a').resource('b').name('c').check('get').reason() == 'a/b/c'
Thing{n: 1}.n == 1 && !has(Thing{}.n)
thing.n == 1 && !has(thing.s)
"""

ERRORS = {
    "object.z": "no such key: z",
    "object.a.b.c": "no such key: c",
    "object.none.x": "no such key: x",
    "object.labels['z']": "no such key: z",
    "l[3]": "index out of bounds: 3",
    "l[-1]": "index out of bounds: -1",
    "1 / 0": "division by zero",
    "1 % 0": "modulus by zero",
    "9223372036854775807 + n": "integer overflow",
    "-9223372036854775808 - n": "integer overflow",
    "0u - 1u": "unsigned integer overflow",
    "int(1e19)": "integer overflow",
    "int('x')": "type conversion error from 'string' to 'int'",
    "dyn(1) + dyn('a')": "no such overload",
    "dyn('a') < dyn(1)": "no such overload",
    "dyn(1) && true": "no such overload",
    "object.z == 1 && object.y == 1": "no such key: z",
    "dyn(1).startsWith('a')": "no such overload: startsWith(int, string)",
    "dyn(1).map(x, x)": "got 'int', expected iterable type",
    "optional.none().value()": "optional.none() dereference",
    "{s: 1, 'hello': 2}": "insert failed: key hello already exists",
    "'a'.matches('(' + s)": "error parsing regexp: missing closing ): `(hello`",
    "'abc'.substring(2, 1)": "invalid substring range. start: 2, end: 1",
    "'%d'.format([dyn('x')])": "error during formatting: decimal clause can only be used on integers, was given string",
    "'%f'.format([dyn(1)])": "error during formatting: fixed-point clause can only be used on doubles, was given int",
    "'%s'.format([dyn(l.first())])": "error during formatting: string clause can only be used on strings, bools, "
    "bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given optional_type",
    "'%s'.format([[dyn(l.first())]])": "error during formatting: no formatting function for optional_type",
    "('%s%' + 's').format([1])": "index 1 out of range",
    "(s + '%').format([1])": "unexpected end of string",
    "(s + '%q').format([1])": 'could not parse formatting clause: unrecognized formatting clause "q"',
    "'abc'.indexOf('b', -1)": "index out of range: -1",
    "timestamp('9999-12-31T00:00:00Z') + duration('48h')": "timestamp overflow",
}


@pytest.mark.parametrize("source", TRUE.strip().replace("'''a\nb'''", "'''a\\nb'''").splitlines())
def test_a_true_expression_is_true(source: str) -> None:
    assert value(source) is True


@pytest.mark.parametrize(("source", "message"), ERRORS.items())
def test_a_failing_expression_reports_its_reason(source: str, message: str) -> None:
    with pytest.raises(EvalError) as error:
        value(source)
    assert str(error.value) == message
