"""A CEL environment with a few variables, for tests of expressions."""

from __future__ import annotations

from typing import Any

from ctrlmgr.expressions import types
from ctrlmgr.expressions.declarations import Functions
from ctrlmgr.expressions.environment import LIBRARIES, Environment, Expression
from ctrlmgr.expressions.library.authorizing import AUTHORIZER_TYPE, Answer, AuthorizerValue, Question
from ctrlmgr.expressions.types import Type

OBJECT = {"a": {"b": 1}, "name": "web-1", "none": None, "labels": {"x": "1", "y": "2"}, "items": [{"n": 1}, {"n": 2}]}


class DeclaredType:
    """The CEL declaration of one object type."""

    def field(self, name: str, field: str) -> Type | None:
        return {"n": types.INT, "s": types.STRING}.get(field)

    def has_type(self, name: str) -> bool:
        return name == "Thing"


def _ask(question: Question) -> Answer:
    return Answer(question.verb == "get", f"{question.group}/{question.resource}/{question.name}{question.path}")


VALUES: dict[str, Any] = {
    "object": OBJECT,
    "n": 3,
    "s": "hello",
    "l": [3, 1, 2],
    "thing": {"n": 1},
    "authorizer": AuthorizerValue(_ask),
}
ENVIRONMENT = Environment(
    {
        "object": types.DYN,
        "n": types.INT,
        "s": types.STRING,
        "l": types.list_of(types.INT),
        "thing": types.struct("Thing"),
        "authorizer": AUTHORIZER_TYPE,
    },
    Functions(LIBRARIES),
    DeclaredType(),
)


def compiled(source: str) -> Expression:
    return ENVIRONMENT.compile(source)


def value(source: str) -> Any:
    return compiled(source).evaluate(VALUES)[0]


def cost(source: str) -> int:
    return compiled(source).evaluate(VALUES)[1]
