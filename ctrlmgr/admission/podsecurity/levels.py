"""Reads a policy from the labels of a namespace: one level and one version for each mode (enforce, audit, warn).

Guarantees: invalid labels never weaken `enforce`: this mode falls back to the strictest level and the latest version.
Invalid labels never cause additional output of `audit` or `warn`: these modes fall back to `privileged`.

Rules come from `k8s.io/pod-security-admission/api` (`helpers.go`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.api.field import FieldError, Path, invalid

PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
LEVELS: Final = (PRIVILEGED, BASELINE, RESTRICTED)
"""The levels in order of strictness, from `privileged` to `restricted`."""

LATEST: Final = 1_000_000
"""A number that represents the version `latest`; it is greater than every minor version."""

PREFIX: Final = "pod-security.kubernetes.io/"
_LABELS = Path("metadata.labels")
_MINOR = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")


class LevelVersion(NamedTuple):
    """The level of one mode of a policy, and the minor version of Kubernetes whose rules apply."""

    level: str = PRIVILEGED
    version: int = LATEST

    def __str__(self) -> str:
        """Return the mode as a string, such as `baseline:v1.30` or `restricted:latest`."""
        return f"{self.level}:{'latest' if self.version == LATEST else f'v1.{self.version}'}"

    def is_equivalent(self, other: LevelVersion) -> bool:
        """Return whether two modes accept the same pods."""
        return self == other or self.level == other.level == PRIVILEGED


class Policy(NamedTuple):
    """The Pod Security policy of a namespace: one mode each for enforce, audit and warn."""

    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()

    @property
    def is_privileged(self) -> bool:
        """Return whether the policy accepts every pod, so that no pod needs a check."""
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED

    def is_equivalent(self, other: Policy) -> bool:
        """Return whether two policies enforce, audit and warn about the same pods."""
        return all(mine.is_equivalent(theirs) for mine, theirs in zip(self, other, strict=True))


class ParsedPolicy(NamedTuple):
    """A policy, and the errors in the labels that define the policy."""

    policy: Policy
    errors: list[FieldError]


def strictness(level: str) -> int:
    """Return a number for the strictness of a level; the number of a stricter level is greater."""
    return LEVELS.index(level)


def parse_level(text: str) -> str | None:
    """Return the level with this name; None if the name is unknown."""
    return text if text in LEVELS else None


def parse_version(text: str) -> int | None:
    """Return the minor version of the version `v1.N` or `latest`; None for any other string."""
    if text == "latest":
        return LATEST
    match = _MINOR.fullmatch(text)
    return int(match.group(1)) if match else None


def read_policy(labels: Mapping[str, str], defaults: Policy) -> ParsedPolicy:
    """Return the policy that labels describe; `defaults` apply where labels are missing."""
    errors: list[FieldError] = []
    modes: dict[str, LevelVersion] = {}
    for mode, default in defaults._asdict().items():
        level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
        modes[mode] = LevelVersion(_level(mode, level, default, errors), _version(mode, version, default, errors))
    enforced = labels.get(PREFIX + "enforce")
    warns = PREFIX + "warn" in labels
    if not warns and enforced in LEVELS and strictness(enforced) > strictness(modes["warn"].level):
        pinned = f"{PREFIX}warn-version" in labels
        modes["warn"] = LevelVersion(enforced, modes["warn"].version if pinned else modes["enforce"].version)
    return ParsedPolicy(Policy(**modes), errors)


def _level(mode: str, given: str | None, default: LevelVersion, errors: list[FieldError]) -> str:
    if given is None:
        return default.level
    level = parse_level(given)
    if level is not None:
        return level
    errors.append(_invalid(mode, given, f"must be one of {', '.join(LEVELS)}"))
    return RESTRICTED if mode == "enforce" else PRIVILEGED


def _version(mode: str, given: str | None, default: LevelVersion, errors: list[FieldError]) -> int:
    if given is None:
        return default.version
    version = parse_version(given)
    if version is None:
        errors.append(_invalid(f"{mode}-version", given, 'must be "latest" or "v1.x"'))
        return LATEST
    return version


def _invalid(label: str, value: Any, detail: str) -> FieldError:
    return invalid(_LABELS.key(PREFIX + label), value, detail)
