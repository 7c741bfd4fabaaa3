"""CEL expressions about the claims of a token, and about the resulting user.

Guarantees: expressions see the same values as in Kubernetes. In expressions, all numbers in claims are doubles, and
attributes that the user lacks are empty. If an expression fails or its value has the wrong type, the token is refused.

Source: apiserver `pkg/authentication/cel/{compile,mapper}.go`, `plugin/pkg/authenticator/token/oidc/oidc.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ctrlmgr.authentication.trusted_issuer import Rule
from ctrlmgr.authentication.user import CredentialsRefused, User
from ctrlmgr.expressions.configured_expressions import compiled, value_of
from ctrlmgr.expressions.declarations import Functions
from ctrlmgr.expressions.environment import Environment, Expression, NoValue
from ctrlmgr.expressions.expression_parser import children
from ctrlmgr.expressions.expression_tree import Ident, Node, Select
from ctrlmgr.expressions.types import ANY, BOOL, STRING, DeclaredObjects, list_of, map_of, struct

Seen = Mapping[str, Any]
"""The values of the variables in an expression, by the variable's name."""

_USER: Final = "kubernetes.UserInfo"
_OBJECTS: Final = DeclaredObjects(
    {
        _USER: {
            "username": STRING,
            "uid": STRING,
            "groups": list_of(STRING),
            "extra": map_of(STRING, list_of(STRING)),
        }
    }
)
_NOT_TEXTS: Final = "expression must return a string or a list of strings"


class TokenExpressions:
    """Compiles expressions about the claims of tokens and about users."""

    def __init__(self, functions: Functions) -> None:
        """Create a compiler whose expressions may call `functions`."""
        self._claims = Environment({"claims": map_of(STRING, ANY)}, functions, unescapes=True)
        self._user = Environment({"user": struct(_USER)}, functions, _OBJECTS, unescapes=True)

    def of_claims(self, source: str) -> Expression:
        """Compile an expression about claims; the type of its value is unknown until evaluation.

        Raises `ValueError` if the expression is invalid.
        """
        return compiled(self._claims, source)

    def rule_of_claims(self, source: str) -> Expression:
        """Compile a validation rule about claims; raises `ValueError` if the expression is invalid."""
        return compiled(self._claims, source, BOOL)

    def rule_of_user(self, source: str) -> Expression:
        """Compile a validation rule about the user; raises `ValueError` if the expression is invalid."""
        return compiled(self._user, source, BOOL)


def names_claim(expression: Expression, claim: str) -> bool:
    """Return whether an expression reads `claim` in the form `claims.NAME`.

    As in Kubernetes, the form `claims['NAME']` is not recognized.
    """
    waiting: list[Node] = [expression.root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Select) and node.field == claim and _is_claims(node.operand):
            return True
        waiting += children(node)
    return False


def _is_claims(node: Node) -> bool:
    return isinstance(node, Ident) and node.name == "claims"


def seen_claims(claims: Mapping[str, Any]) -> Seen:
    """Return the variables for expressions about claims.

    Raises `OverflowError` if a number is too large for a double.
    """
    return {"claims": _as_doubles(claims)}


def _as_doubles(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_doubles(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_doubles(each) for each in value]
    return float(value) if type(value) is int else value


def _seen_user(user: User) -> Seen:
    extra = {key: list(values) for key, values in user.extra.items()}
    return {"user": {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}}


def text_of(expression: Expression, seen: Seen, what: str) -> str:
    """Return the string value of an expression.

    Raises `NoValue` if the evaluation fails or returns another type; the error message contains `what`.
    """
    problem = f"oidc: error evaluating {what} claim expression"
    value = _value(expression, seen, problem)
    if not isinstance(value, str):
        raise NoValue(f"{problem}: {what} claim expression must return a string")
    return value


def texts_of(expression: Expression, seen: Seen, problem: str) -> tuple[str, ...]:
    """Return the value of an expression as a list of strings, without empty strings.

    The function raises `NoValue` if the evaluation of the expression fails.
    """
    value = _value(expression, seen, problem)
    texts = [value] if isinstance(value, str) else () if value is None else value
    if not isinstance(texts, list | tuple) or not all(isinstance(each, str) for each in texts):
        raise NoValue(f"{problem}: {_NOT_TEXTS}")
    return tuple(each for each in texts if each)


def _value(expression: Expression, seen: Seen, problem: str) -> Any:
    try:
        return value_of(expression, seen)
    except NoValue as error:
        raise NoValue(f"{problem}: {error}") from error


def extra_of(mappings: Iterable[tuple[str, Expression]], seen: Seen) -> dict[str, tuple[str, ...]]:
    """Return the user's extra fields, without empty fields; raises `NoValue` if an expression fails."""
    problem = "oidc: error evaluating extra claim expression"
    found = {key: texts_of(expression, seen, problem) for key, expression in mappings}
    return {key: texts for key, texts in found.items() if texts}


def check_claims(rules: Iterable[Rule], seen: Seen) -> None:
    """Raise `CredentialsRefused` if claims violate a rule, and `NoValue` if a rule cannot be evaluated."""
    _check(rules, seen, "oidc: error evaluating claim validation expression")


def check_user(rules: Iterable[Rule], user: User) -> None:
    """Raise `CredentialsRefused` if a user violates a rule, and `NoValue` if a rule cannot be evaluated."""
    _check(rules, _seen_user(user), "oidc: error evaluating user info validation rule")


def _check(rules: Iterable[Rule], seen: Seen, problem: str) -> None:
    """Evaluate all rules, and then check the results, in the same order as Kubernetes."""
    values = [(rule, _value(rule.expression, seen, problem)) for rule in rules]
    for rule, value in values:
        if value is not True:
            words = f"validation expression '{rule.expression.source}' failed: {rule.message}"
            raise CredentialsRefused(f"{problem}: {words}")
