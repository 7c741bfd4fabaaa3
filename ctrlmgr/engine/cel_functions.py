"""The functions that CEL expressions in objects may call: standard functions, Kubernetes' libraries, named formats.

Source: apiserver `pkg/cel/environment/base.go`, `pkg/cel/library/format.go`.
"""

from __future__ import annotations

from typing import Final

from ctrlmgr.engine.validation import name_formats
from ctrlmgr.expressions.declarations import Functions
from ctrlmgr.expressions.environment import LIBRARIES
from ctrlmgr.expressions.library.device_attributes import DEVICES
from ctrlmgr.expressions.library.formats import Format, format_library
from ctrlmgr.expressions.library.regex_and_urls import PATCHES, uri_problems
from ctrlmgr.expressions.library.string_formats import base64_problems, date_problems, datetime_problems, uuid_problems

_FORMATS: Final = (
    Format("dns1123Label", name_formats.dns1123_label, 30),
    Format("dns1123Subdomain", name_formats.dns1123_subdomain, 60),
    Format("dns1035Label", name_formats.dns1035_label, 30),
    Format("qualifiedName", name_formats.qualified_name, 60),
    Format("dns1123LabelPrefix", lambda text: name_formats.label_name(text, True), 30),
    Format("dns1123SubdomainPrefix", lambda text: name_formats.subdomain_name(text, True), 60),
    Format("dns1035LabelPrefix", lambda text: name_formats.dns1035_label(_as_whole(text)), 30),
    Format("labelValue", name_formats.label_value, 40),
    Format("uri", uri_problems, 1000),
    Format("uuid", uuid_problems, 60),
    Format("byte", base64_problems, 60),
    Format("date", date_problems, 25),
    Format("datetime", datetime_problems, 60),
)


def _as_whole(prefix: str) -> str:
    return prefix[:-1] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


_LIBRARIES: Final = (*LIBRARIES, format_library({each.name: each for each in _FORMATS}))
FUNCTIONS: Final = Functions(_LIBRARIES)
"""The functions that every CEL expression may call."""
PATCH_FUNCTIONS: Final = Functions((*_LIBRARIES, PATCHES))
"""The CEL functions for expressions that create JSON patches."""
DEVICE_FUNCTIONS: Final = Functions((*_LIBRARIES, DEVICES))
"""The CEL functions for device selectors in which attributes may be lists."""
