"""What the rest of ctrlmgr knows of a controller: one declaration, in the controller's own package.

`serve` builds controllers from their descriptors, the command line and the settings take their options from there, a
replay learns which recorded writes were theirs, and the pages of `docs/` list them. Adding a controller touches its
package and one line of `registry`.

A descriptor is read by every command, so the package that holds it imports nothing heavy: `builder` names the function
that puts the controller together, as entry points do, and only `build` imports it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.names import ServiceAccountName
from ctrlmgr.authentication.user import AUTHENTICATED, User
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule

if TYPE_CHECKING:  # only the names: who reads descriptors must not load engine and log
    from random import Random

    from ctrlmgr.client import EngineClient
    from ctrlmgr.clock import Clock
    from ctrlmgr.controllers.events.recorder import Recorder
    from ctrlmgr.engine.writing import WriteEngine
    from ctrlmgr.eventlog import EventLog
    from ctrlmgr.informer import Informers
    from ctrlmgr.manager import Controller

NAMESPACE: Final = "kube-system"
"""Where the controllers' ServiceAccounts are."""

MANAGER: Final = "system:kube-controller-manager"
"""The user that kube-controller-manager is."""

SECTION = "controllers"
"""The section of the settings file that holds every controller's options."""


@dataclass(frozen=True)
class NoOptions:
    """The options of a controller that has none."""


class ControllerContext(Protocol):
    """What a controller is built from."""

    @property
    def informers(self) -> Informers:
        """The caches; ask for informers while building, they sync afterwards."""

    @property
    def event_log(self) -> EventLog:
        """The log, for the outcomes of reconciles."""

    @property
    def clock(self) -> Clock:
        """The time."""

    @property
    def random(self) -> Random:
        """The source of names and ids."""

    @property
    def engine(self) -> WriteEngine:
        """The engine, for the kinds that there are."""

    @property
    def root_ca(self) -> str:
        """The certificate of the authority that signs for this server, as PEM."""

    @property
    def at_once(self) -> int:
        """How many objects a reconcile may write at the same time, on threads of their own; 1 where there is one."""

    @property
    def recalls(self) -> bool:
        """Whether controllers take the objects that exist at the start as their own work, and read state from them.

        Kubernetes' controllers remember nothing when they start. Those of a recording went on without a break.
        """

    def client(self, descriptor: ControllerDescriptor[Any], *, canonical: bool = False) -> EngineClient:
        """Return what the controller writes through, as itself.

        `canonical` promises that what it creates and updates is in its final form: see `engine.verbs.canonical`.
        """

    def apiserver_client(self) -> EngineClient:
        """Return a client for what the API server itself writes, whichever process leads."""

    def recorder(self, descriptor: ControllerDescriptor[Any]) -> Recorder:
        """Return what the controller records Events through."""


O = TypeVar("O")  # noqa: E741  # the options of a controller


class OwnedKind(NamedTuple):
    """A kind of which a replay expects the controller to write what the recorded one wrote.

    `manager` is the field manager under which the recorded one writes, `parent` the kind whose object of the same name
    an object stands for and goes with, `causes` what makes the controller act.
    """

    resource: Resource
    manager: str
    parent: Resource
    causes: tuple[Resource, ...]


@dataclass(frozen=True, kw_only=True)
class ControllerDescriptor(Generic[O]):
    """One controller, declared.

    `name` and `aliases` are kube-controller-manager's; each alias, and each former name of ours, is understood in
    `--controllers`. `component` is the source of its Events, and `account` the ServiceAccount in kube-system that it
    acts as; both are the name where Kubernetes has no other.
    """

    name: str
    does: str
    """What it sees to, as one phrase for tables."""
    builder: str
    """`package.module:function`, called with a `ControllerContext` and the options before the informers sync."""
    options: type[O]
    """A frozen dataclass whose fields are settings of `[controllers]`, or `NoOptions`."""
    aliases: tuple[str, ...] = ()
    former_names: tuple[str, ...] = ()
    component: str = ""
    account: str = ""
    acts_as: str = ""
    """The user that it is where it is no ServiceAccount: kube-controller-manager itself, or another component."""
    rules: tuple[PolicyRule, ...] = ()
    """What a controller that Kubernetes does not have may do; for the others there are Kubernetes' roles."""
    tells_in_series: bool = False
    """Whether its Events are of the newer form, that of `events.k8s.io`; see `controllers.events.recorder`."""
    watches: tuple[Resource, ...] = ()
    owns: tuple[Resource, ...] = ()
    """What it creates and deletes."""
    enabled_by_default: bool = True
    starts_first: bool = False
    """Whether it is built and started before all others, which need what it makes."""
    replays: bool = False
    """Whether a replay runs it."""
    replayed_kinds: tuple[OwnedKind, ...] = ()
    """The kinds that a replay compares object by object."""
    shared_kinds: tuple[Resource, ...] = ()
    """The kinds that it writes beside clients and other controllers: a replay asks of each change who made it."""

    def build(self, context: ControllerContext, options: O) -> Controller:
        """Put the controller together, before the informers sync."""
        module, _, function = self.builder.partition(":")
        builder: Callable[[ControllerContext, O], Controller] = getattr(importlib.import_module(module), function)
        return builder(context, options)

    @property
    def event_source(self) -> str:
        """The component that its Events name."""
        return self.component or self.name

    @property
    def service_account(self) -> str:
        """The name of its ServiceAccount in kube-system."""
        return self.account or self.name

    @property
    def user(self) -> str:
        """The user name under which it writes."""
        return self.as_user.name

    @property
    def as_user(self) -> User:
        """The user that it is: its ServiceAccount, or a component of its own."""
        if self.acts_as:
            return User(self.acts_as, "", (AUTHENTICATED,))
        return ServiceAccountName(NAMESPACE, self.service_account).user
