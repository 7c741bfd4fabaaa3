"""Tests that CEL expressions have exactly the functions and variables of Kubernetes 1.36.

Source: apiserver `pkg/cel/environment/base.go`, `pkg/cel/library`; cel-go `common/stdlib`, `cel/library.go`, `ext`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctrlmgr.engine.cel_functions import FUNCTIONS, PATCH_FUNCTIONS
from ctrlmgr.expressions.declarations import TYPE_NAMES, Functions, Overload
from ctrlmgr.expressions.macros import _MACROS

_ARITHMETIC = "double int uint"
_SPANS = "duration"
_ORDERED = "bool bytes double duration int string timestamp uint"
_TIMES = "getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getMonth"
_PARTS = "getHours getMilliseconds getMinutes getSeconds"
_FORMATS = (
    "byte date datetime dns1035Label dns1035LabelPrefix dns1123Label dns1123LabelPrefix dns1123Subdomain "
    "dns1123SubdomainPrefix labelValue qualifiedName uri uuid"
)

DECLARED = """
_?_:_(bool, T, T) _&&_(bool, bool) _||_(bool, bool) !_(bool) @not_strictly_false(bool)
_==_(A, A) _!=_(A, A) @in(A, list(A)) @in(A, map(A, B))
_[_](list(A), int) _[_](map(A, B), A) _[_](optional_type(list(V)), int) _[_](optional_type(map(K, V)), K)
_[?_](list(V), int) _[?_](map(K, V), K) _[?_](optional_type(list(V)), int) _[?_](optional_type(map(K, V)), K)
_+_(bytes, bytes) _+_(double, double) _+_(duration, duration) _+_(duration, timestamp) _+_(timestamp, duration)
_+_(int, int) _+_(list(A), list(A)) _+_(string, string) _+_(uint, uint)
_-_(double, double) _-_(duration, duration) _-_(int, int) _-_(timestamp, duration) _-_(timestamp, timestamp)
_-_(uint, uint) -_(double) -_(int) _%_(int, int) _%_(uint, uint)
dyn(A) type(A) bool(bool) bool(string) bytes(bytes) bytes(string)
double(double) double(int) double(string) double(uint) duration(duration) duration(int) duration(string)
int(int) int(double) int(duration) int(string) int(timestamp) int(uint)
string(string) string(bool) string(bytes) string(double) string(duration) string(int) string(timestamp) string(uint)
timestamp(timestamp) timestamp(int) timestamp(string) uint(uint) uint(double) uint(int) uint(string)
.contains(string, string) .endsWith(string, string) .startsWith(string, string)
matches(string, string) .matches(string, string)
optional.none() optional.of(V) optional.ofNonZeroValue(V) optional.unwrap(list(optional_type(V)))
.unwrapOpt(list(optional_type(V))) .value(optional_type(V)) .hasValue(optional_type(V))
.or(optional_type(V), optional_type(V)) .orValue(optional_type(V), V) .first(list(T)) .last(list(T))
.charAt(string, int) .indexOf(string, string) .indexOf(string, string, int) .lastIndexOf(string, string)
.lastIndexOf(string, string, int) .lowerAscii(string) .upperAscii(string) .trim(string)
.replace(string, string, string) .replace(string, string, string, int) .split(string, string)
.split(string, string, int) .substring(string, int) .substring(string, int, int) .format(string, list(dyn))
strings.quote(string) .join(list(string)) .join(list(string), string)
sets.contains(list(T), list(T)) sets.equivalent(list(T), list(T)) sets.intersects(list(T), list(T))
.slice(list(T), int, int) .flatten(list(list(T))) .flatten(list(dyn), int) .reverse(list(T)) .distinct(list(T))
lists.range(int) cel.@mapInsert(map(K, V), K, V) cel.@mapInsert(map(K, V), map(K, V))
.indexOf(list(T), T) .lastIndexOf(list(T), T) .find(string, string) .findAll(string, string)
.findAll(string, string, int)
url(string) isURL(string) .getScheme(kubernetes.URL) .getHost(kubernetes.URL) .getHostname(kubernetes.URL)
.getPort(kubernetes.URL) .getEscapedPath(kubernetes.URL) .getQuery(kubernetes.URL)
ip(string) isIP(string) ip.isCanonical(string) string(net.IP) .family(net.IP) .isUnspecified(net.IP) .isLoopback(net.IP)
.isLinkLocalMulticast(net.IP) .isLinkLocalUnicast(net.IP) .isGlobalUnicast(net.IP)
cidr(string) isCIDR(string) string(net.CIDR) .containsIP(net.CIDR, string) .containsIP(net.CIDR, net.IP)
.containsCIDR(net.CIDR, string) .containsCIDR(net.CIDR, net.CIDR) .ip(net.CIDR) .prefixLength(net.CIDR)
.masked(net.CIDR)
quantity(string) isQuantity(string) sign(Quantity) .isInteger(Quantity) .asInteger(Quantity)
.asApproximateFloat(Quantity) .add(Quantity, Quantity) .add(Quantity, int) .sub(Quantity, Quantity)
.sub(Quantity, int) .isLessThan(Quantity, Quantity) .isGreaterThan(Quantity, Quantity) .compareTo(Quantity, Quantity)
semver(string) semver(string, bool) isSemver(string) isSemver(string, bool) .major(Semver) .minor(Semver)
.patch(Semver) .isLessThan(Semver, Semver) .isGreaterThan(Semver, Semver) .compareTo(Semver, Semver)
format.named(string) .validate(NamedFormat, string)
.path(Authorizer, string) .group(Authorizer, string) .serviceAccount(Authorizer, string, string)
.resource(GroupCheck, string) .subresource(ResourceCheck, string) .namespace(ResourceCheck, string)
.name(ResourceCheck, string) .fieldSelector(ResourceCheck, string) .labelSelector(ResourceCheck, string)
.check(PathCheck, string) .check(ResourceCheck, string)
.allowed(Decision) .reason(Decision) .errored(Decision) .error(Decision)
"""
"""Function signatures without result types: a dot marks a receiver, and types have no package names."""

NAMES_OF_TYPES = """
bool bytes double google.protobuf.Duration google.protobuf.Timestamp int list map net.CIDR net.IP null_type
optional_type string type uint
"""

SHORT = ("kubernetes.authorization.", "kubernetes.")
WHOLE = ("kubernetes.URL",)


def products() -> Iterator[str]:
    """Yield the signatures of functions that are declared for several types."""
    for operator in ("_*_", "_/_"):
        yield from (f"{operator}({each}, {each})" for each in _ARITHMETIC.split())
    for operator in ("_<_", "_<=_", "_>_", "_>=_"):
        yield from (f"{operator}({each}, {each})" for each in _ORDERED.split())
        pairs = [(one, other) for one in _ARITHMETIC.split() for other in _ARITHMETIC.split() if one != other]
        yield from (f"{operator}({one}, {other})" for one, other in pairs)
    for each in _ORDERED.split():
        yield from (f".{name}(list({each}))" for name in ("isSorted", "min", "max", "sort"))
        yield f".@sortByAssociatedKeys(list(T), list({each}))"
    yield from (f".sum(list({each}))" for each in (*_ARITHMETIC.split(), _SPANS))
    for each in ("string", "bytes", "list(A)", "map(A, B)"):
        yield from (f"size({each})", f".size({each})")
    for name in (*_TIMES.split(), *_PARTS.split()):
        yield from (f".{name}(timestamp)", f".{name}(timestamp, string)")
    yield from (f".{name}(duration)" for name in _PARTS.split())
    yield from (f"format.{name}()" for name in _FORMATS.split())


def listed() -> Iterator[str]:
    """Yield the signatures of the functions for lists."""
    text, begin, depth = " ".join(DECLARED.split()), 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == ")" and not depth:
            yield text[begin : at + 1].strip()
            begin = at + 1


def written(name: str, overload: Overload) -> str:
    arguments = ", ".join(map(str, overload.arguments))
    if not any(whole in arguments for whole in WHOLE):
        for prefix in SHORT:
            arguments = arguments.replace(prefix, "")
    return f"{'.' * overload.is_member}{name}({arguments})"


def signatures(functions: Functions) -> list[str]:
    return sorted(written(name, each) for name, overloads in functions.overloads.items() for each in overloads)


def test_functions_equal_kubernetes() -> None:
    assert signatures(FUNCTIONS) == sorted([*listed(), *products()])


def test_patch_expressions_have_one_more_function() -> None:
    assert sorted({*signatures(PATCH_FUNCTIONS)} - {*signatures(FUNCTIONS)}) == ["jsonpatch.escapeKey(string)"]


def test_type_names_equal_kubernetes() -> None:
    assert sorted(TYPE_NAMES) == NAMES_OF_TYPES.split()


def test_macros_equal_kubernetes() -> None:
    """`has` is the only macro without a receiver, so it is listed separately."""
    assert sorted(_MACROS) == sorted(
        [
            *[(name, count) for name in ("all", "exists", "exists_one", "existsOne") for count in (2, 3)],
            *[(name, count) for name in ("transformList", "transformMap", "transformMapEntry") for count in (3, 4)],
            *[("map", 2), ("map", 3), ("filter", 2), ("optMap", 2), ("optFlatMap", 2), ("sortBy", 2)],
        ]
    )
