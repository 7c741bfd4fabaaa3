"""Declares every setting with its type and default; merges flags, environment and a TOML file into `Settings`.

Guarantees:
- For each key, a flag takes precedence over the environment variable `CTRLMGR_SECTION_KEY`. The variable takes
  precedence over the file, and the file over the default. `Loaded.origins` names the source of each value.
- An invalid value, key or variable raises a `SettingsError`. Its message is one line, which names the source of the
  value, the problem and the valid values.
"""

from ctrlmgr.settings.admission_settings import AdmissionSettings
from ctrlmgr.settings.authorization_settings import AuthorizationSettings
from ctrlmgr.settings.loading import (
    SWITCHES,
    Loaded,
    declarations,
    flags,
    keys,
    load,
    plain_default,
    plain_value,
    value_of,
    variable,
)
from ctrlmgr.settings.sections import CompactionSettings, Retention, ServiceSettings, Settings
from ctrlmgr.settings.setting_declaration import Declaration, Setting, declarations_of, declare
from ctrlmgr.settings.setting_types import DURATION, LIST, NAMES, TEXT, TEXTS, format_duration, parse_duration

__all__ = [
    "DURATION",
    "LIST",
    "NAMES",
    "SWITCHES",
    "TEXT",
    "TEXTS",
    "AdmissionSettings",
    "AuthorizationSettings",
    "CompactionSettings",
    "Declaration",
    "Loaded",
    "Retention",
    "ServiceSettings",
    "Setting",
    "Settings",
    "declarations",
    "declarations_of",
    "declare",
    "flags",
    "format_duration",
    "keys",
    "load",
    "parse_duration",
    "plain_default",
    "plain_value",
    "value_of",
    "variable",
]
