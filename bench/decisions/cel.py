"""Our expressions against the CEL libraries of PyPI (`pip install cel-python common-expression-language`).

- `evaluate`: a validation rule as custom resources have them, on an object of two sizes. The other libraries get the
  object as a dict each time, as a server would have it.
- `hostile`: an expression whose loops multiply. Ours ends when its cost passes Kubernetes' limit; the others have no
  cost.
- `functions`: which of Kubernetes' own functions a library knows.
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
    """Compile with our own code."""
    compiled = ENVIRONMENT.compile(source)
    return lambda self: compiled.evaluate({"self": self})[0]


def cel_python(source: str) -> Program:
    """Compile with cel-python."""
    celpy = alternative("celpy", "cel-python")
    environment = celpy.Environment()
    program = environment.program(environment.compile(source))
    return lambda self: program.evaluate({"self": celpy.json_to_cel(self)})


def cel_rust(source: str) -> Program:
    """Compile with common-expression-language, which binds the library of Rust."""
    program = alternative("cel", "common-expression-language").compile(source)
    return lambda self: program.execute({"self": self})


OTHERS = {"cel-python": cel_python, "common-expression-language": cel_rust}


def knows(library: Callable[[str], Program], source: str) -> bool:
    """Return whether an expression has the value true."""
    try:
        return bool(library(source)({}))
    except BaseException:  # a library in Rust may panic, which is no Exception
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
    for count, names in ((20, OTHERS), (150, ["common-expression-language"])):  # cel-python would take an hour
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
