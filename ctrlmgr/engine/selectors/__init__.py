"""Label selectors, and field selectors for the fields that a kind supports.

Label and field selectors are parsed once for each request and compiled to closures, because a list matches every object
against the selectors.
"""

from ctrlmgr.engine.selectors.field_selector_parser import FieldSelector
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector

__all__ = ["FieldSelector", "LabelSelector"]
