"""Every setting: its type, its default, and how flags, environment and a TOML file become one `Settings`.

Guarantees:
- Precedence: flag > `CTRLMGR_SECTION_KEY` > file > default, key by key; `Loaded.origins` says which one it was.
- Nothing wrong gets through: a wrong value, key or variable is a one-line `SettingsError` that says where it is,
  what is wrong and what would be right.
"""

from ctrlmgr.settings.kinds import format_duration, parse_duration
from ctrlmgr.settings.loading import FLAGS, SWITCHES, Loaded, keys, load, plain_value, value_of, variable
from ctrlmgr.settings.sections import CompactionSettings, Retention, ServiceSettings, Settings

__all__ = [
    "FLAGS",
    "SWITCHES",
    "CompactionSettings",
    "Loaded",
    "Retention",
    "ServiceSettings",
    "Settings",
    "format_duration",
    "keys",
    "load",
    "parse_duration",
    "plain_value",
    "value_of",
    "variable",
]
