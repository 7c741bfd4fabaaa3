"""Functions for attributes of devices; an attribute has one value or a list of values.

Source: `k8s.io/dynamic-resource-allocation/cel/compile.go` (`includesFunc`).
"""

from __future__ import annotations

from typing import Any, Final

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.values import EvalError, equal

DEVICES: Final = Library()

MOST_VALUES: Final = 48
"""The maximum number of values that all attributes of a device have together."""


@DEVICES.function("includes", "dyn.(dyn) -> bool")
def _includes(target: Any, value: Any) -> bool:
    if not isinstance(target, list | tuple):
        return equal(target, value)
    for each in target[:MOST_VALUES]:
        if equal(each, value):
            return True
    if len(target) > MOST_VALUES:
        raise EvalError(f"'includes' function cannot be applied to lists longer than {MOST_VALUES} values")
    return False
