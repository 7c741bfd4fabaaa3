"""Selectors as clients write them: of labels, and of the few fields that a kind lets one select by.

Both are parsed once a request and compiled to closures, because a list asks them about every object there is.
"""

from ctrlmgr.engine.selectors.fields import FieldSelector
from ctrlmgr.engine.selectors.labels import LabelSelector

__all__ = ["FieldSelector", "LabelSelector"]
