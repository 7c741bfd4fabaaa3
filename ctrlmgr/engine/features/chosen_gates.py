"""Reads the flag `--feature-gates`, which switches feature gates on and off.

Guarantees: if no code of ctrlmgr reads a gate, the flag accepts only the default state of that gate. Therefore every
accepted state that differs from the default has an effect.

Source: component-base `featuregate/feature_gate.go` (`Set`, `unsafeSetFromMap`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client import Gauge

from ctrlmgr.engine.features.gates import DEFAULTS
from ctrlmgr.engine.features.known_gates import KNOWN_GATES, KnownGate, Stage
from ctrlmgr.errors import SettingsError

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
"""The strings that Go's `strconv.ParseBool` accepts."""

_ALL_OF_A_STAGE: Final = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}

_ENABLED: Final = Gauge(
    "kubernetes_feature_enabled", "The data about the stage and enablement of a k8s feature.", ("name", "stage")
)


def chosen_gates(texts: Iterable[str]) -> Mapping[str, bool]:
    """Return the states of the feature gates that `texts` (each `NAME=BOOL`) set, for `gates.switch`.

    The names `AllAlpha` and `AllBeta` set all gates of a stage, except for gates that `texts` names or that `gates`
    lacks. Raises `SettingsError` if a gate is unknown or locked to another value, or if ctrlmgr does not support the
    state.
    """
    named = dict(map(_read, texts))
    of_stages = {
        gate: named[word]
        for word, stage in _ALL_OF_A_STAGE.items()
        if word in named
        for gate in DEFAULTS
        if KNOWN_GATES[gate].stage is stage
    }
    return of_stages | {gate: state for gate, state in named.items() if gate in DEFAULTS}


def report_gates(switched: Mapping[str, bool]) -> None:
    """Set the metric `kubernetes_feature_enabled` for every known gate.

    `switched` contains the states that were set.
    """
    for name, known in KNOWN_GATES.items():
        _ENABLED.labels(name, known.stage).set(switched.get(name, known.default))


def _read(text: str) -> tuple[str, bool]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise SettingsError(f"--feature-gates: missing bool value for {name}")
    known = KNOWN_GATES.get(name)
    if known is None:
        raise SettingsError(f"--feature-gates: unrecognized feature gate: {name}")
    if value not in _TRUE | _FALSE:
        raise SettingsError(f"--feature-gates: invalid value of {name}={value}; it must be true or false")
    state = value in _TRUE
    _check(name, known, state=state)
    return name, state


def _check(name: str, known: KnownGate, *, state: bool) -> None:
    """Raise `SettingsError` if the feature gate cannot have the requested state."""
    if state == known.default or name in _ALL_OF_A_STAGE:
        return
    requested, default = str(state).lower(), str(known.default).lower()
    if known.is_locked:
        raise SettingsError(
            f"--feature-gates: cannot set feature gate {name} to {requested}, feature is locked to {default}"
        )
    if name not in DEFAULTS:
        raise SettingsError(f"--feature-gates: {name} is always {default} in ctrlmgr; leave it out")
