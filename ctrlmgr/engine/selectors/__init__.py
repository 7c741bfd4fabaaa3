"""Label selectors, and field selectors for the fields that a kind supports.

Both are parsed once for each request and compiled to closures, because a list matches them against every object.
"""

from ctrlmgr.engine.selectors.fields import FieldSelector
from ctrlmgr.engine.selectors.labels import LabelSelector

__all__ = ["FieldSelector", "LabelSelector"]
