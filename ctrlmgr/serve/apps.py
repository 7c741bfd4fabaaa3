"""Loads the apps that the settings name, and builds the apps' controllers in the way of built-in controllers.

Guarantees: errors of apps are raised before any component starts, each with a message of one line. Errors are an app
that cannot be imported, two controllers with one name, and a kind that contradicts a stored CustomResourceDefinition.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

import structlog

from ctrlmgr.api.resource import DEFINITIONS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers import registry
from ctrlmgr.errors import CtrlmgrError, SettingsError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.extensions.custom.custom_kind import outline_of
from ctrlmgr.framework.app import App
from ctrlmgr.framework.app_loading import installed, load_app, load_apps
from ctrlmgr.framework.class_declaration import Declaration, is_builtin
from ctrlmgr.framework.controller_building import check_names, descriptors
from ctrlmgr.framework.install import MANAGER, changes, install
from ctrlmgr.settings import Settings

log = structlog.get_logger(__name__)

_RETRY: Final = 1.0
"""The seconds between two attempts to install a CustomResourceDefinition."""


class SelectedApps(NamedTuple):
    """The loaded apps, and those controllers that the settings enable."""

    apps: Sequence[App]
    names: Sequence[str]
    """The names by which the settings refer to the loaded apps."""
    controllers: registry.Enabled


def chosen(settings: Settings, event_log: EventLog) -> SelectedApps:
    """Return the apps and controllers that the settings choose; raises `SettingsError` for an unusable app.

    An entry of `controllers.enabled` may also name an app: `shop:app`, or the name of an installed app. An entry that
    names an app enables the app's controllers.
    """
    apps, names = load_apps(settings.controllers.apps), [*settings.controllers.apps]
    known = {name for each in registry.ALL for name in (each.name, *each.aliases, *each.former_names)}
    known |= {controller.name for app in apps for controller in app.controllers}
    desired: list[str] = []
    for entry in settings.controllers.enabled:
        is_known = entry == "*" or entry.startswith("-") or entry in known
        if ":" in entry or (not is_known and entry in installed()):  # The search for installed packages takes long.
            app = load_app(entry, origin="--controllers")
            apps += [] if app in apps else [app]
            names.append(entry)
            desired += [controller.name for controller in app.controllers]
        else:
            desired.append(entry)
    check_names(apps, registry.ALL)
    changes(apps, lambda key: event_log.get(DEFINITIONS, key))
    for app in apps:
        for kind in dict.fromkeys(kind for controller in app.controllers for kind in controller.declared):
            _require_readable(kind, event_log)
        _tell_of_missing(app, event_log)
    theirs = [each for app in apps for each in descriptors(app)]
    return SelectedApps(apps, names, registry.enabled(desired, [*registry.ALL, *theirs]))


def _require_readable(kind: Declaration, event_log: EventLog) -> None:
    """Raise `SettingsError` for a kind if only a webhook can convert its stored objects to the app's version.

    The stored version matters because caches contain objects in their stored version. Without a webhook, all versions
    of an object have the same fields, and the app's class reads the fields that it declares.
    """
    stored = event_log.get(DEFINITIONS, Key("", str(kind.resource)))
    if stored is None:
        return
    definition = stored.to_dict()
    versions = {*definition.get("status", {}).get("storedVersions", ()), outline_of(stored).storage.name}
    if definition["spec"].get("conversion", {}).get("strategy") == "Webhook" and versions != {kind.version}:
        raise SettingsError(
            f"{kind.where} is of version {kind.version}, and {kind.resource} is stored as {', '.join(sorted(versions))}"
            " and converted by a webhook: run the app with `ctrlmgr run`, which reads its own version"
        )


def _tell_of_missing(app: App, event_log: EventLog) -> None:
    """Log the kinds for which controllers wait, because no CustomResourceDefinition defines them yet."""
    defined = {kind.resource for kind in app.kinds}
    for controller in app.controllers:
        for kind in controller.kinds:
            is_known = is_builtin(kind.group) or kind.resource in defined
            if not is_known and event_log.get(DEFINITIONS, Key("", str(kind.resource))) is None:
                log.warning("waiting for a definition", resource=str(kind.resource), controller=controller.name)


class Definitions:
    """A runnable that installs the CustomResourceDefinitions of apps and then ends."""

    name = "app-definitions"

    def __init__(self, apps: Sequence[App], client: EngineClient, event_log: EventLog, *, clock: Clock) -> None:
        """Install the CustomResourceDefinitions of `apps` through `client`."""
        self._apps = apps
        self._client = client
        self._log = event_log
        self._clock = clock

    def run(self, stop: threading.Event) -> None:
        """Install the CustomResourceDefinitions.

        Raises `SettingsError` if the engine refuses a CustomResourceDefinition; retries after transient errors.
        """
        pause = threading.Condition()
        while not stop.is_set():
            try:
                stored = install(
                    self._apps,
                    lambda key: self._log.get(DEFINITIONS, key),
                    lambda definition: self._client.apply(definition, MANAGER, force=True),
                )
            except CtrlmgrError as error:
                if not error.retryable:
                    raise
                log.warning("installing definitions failed, retrying", error=str(error), retry_in=_RETRY)
                with pause:
                    self._clock.wait(pause, _RETRY)
                continue
            for definition in stored:
                log.info("definition installed", name=definition.name, revision=definition.revision)
            return
