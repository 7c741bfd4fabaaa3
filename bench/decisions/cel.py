"""Compares our CEL implementation with the CEL libraries on PyPI (`pip install cel-python common-expression-language`).

- `evaluate`: a typical validation rule of a custom resource, for a small and a large object. The other libraries
  convert the object from a dict for each evaluation, because a server has decoded JSON.
- `hostile`: an expression with nested loops, whose cost is the product of their lengths. Our implementation stops when
  the cost exceeds Kubernetes' limit; the other libraries do not limit the cost.
- `functions`: the CEL functions of Kubernetes that each library supports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.decisions.comparison import alternative, microseconds, once, row
from ctrlmgr.expressions import types
from ctrlmgr.expressions.declarations import Functions
from ctrlmgr.expressions.environment import LIBRARIES, Environment

RULE = "self.replicas >= self.minimum && self.items.all(i, i.port > 0 && i.name.startsWith('web'))"
LOOPS = "self.items.all(a, self.items.all(b, self.items.all(c, a.port + b.port + c.port > 0)))"
OWN = [
    "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
    "ip('10.0.0.1').family() == 4",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
    "url('https://example.com').getHost() == 'example.com'",
    "['b', 'a'].isSorted() == false",
    "'a1b2'.findAll('[0-9]') == ['1', '2']",
    "semver('1.2.3').isLessThan(semver('1.3.0'))",
]
ENVIRONMENT = Environment({"self": types.DYN}, Functions(LIBRARIES))

Program = Callable[[dict[str, Any]], object]


def workload(count: int) -> dict[str, Any]:
    """Return an object with a list of `count` items."""
    return {"replicas": 3, "minimum": 1, "items": [{"name": f"web-{n}", "port": 8000 + n} for n in range(count)]}


def ours(source: str) -> Program:
    """Compile an expression with our implementation."""
    compiled = ENVIRONMENT.compile(source)
    return lambda self: compiled.evaluate({"self": self})[0]


def cel_python(source: str) -> Program:
    """Compile an expression with cel-python."""
    celpy = alternative("celpy", "cel-python")
    environment = celpy.Environment()
    program = environment.program(environment.compile(source))
    return lambda self: program.evaluate({"self": celpy.json_to_cel(self)})


def cel_rust(source: str) -> Program:
    """Compile an expression with common-expression-language, which is a binding for a Rust library."""
    program = alternative("cel", "common-expression-language").compile(source)
    return lambda self: program.execute({"self": self})


OTHERS = {"cel-python": cel_python, "common-expression-language": cel_rust}


def knows(library: Callable[[str], Program], source: str) -> bool:
    """Return whether an expression evaluates to true."""
    try:
        return bool(library(source)({}))
    except BaseException:  # a Rust library may panic, which raises an exception that is not a subclass of Exception
        return False


def main() -> None:
    """Print all comparisons."""
    for count in (3, 100):
        own, self = ours(RULE), workload(count)
        assert own(self) is True
        cost = microseconds(own, self)
        for name, library in OTHERS.items():
            program = library(RULE)
            row(f"evaluate, {count} items, {name}", cost, microseconds(program, self))
    for count, names in ((20, OTHERS), (150, ["common-expression-language"])):  # cel-python would need an hour
        own, self = ours(LOOPS), workload(count)
        cost, end = once(own, self)
        for name in names:
            library = OTHERS[name]
            program = library(LOOPS)
            row(f"hostile, {count} items, {name}", cost, once(program, self)[0], end)
    for name, library in {"ours": ours, **OTHERS}.items():
        print(f"functions: {name} knows {sum(knows(library, source) for source in OWN)} of {len(OWN)}")


if __name__ == "__main__":
    main()
