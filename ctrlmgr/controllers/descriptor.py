"""Controller descriptors: each controller's package declares its name, options, kinds and builder.

The command `serve` builds controllers from their descriptors. The command line and the settings read the options from
the descriptors. A replay uses the descriptors to find the recorded writes of controllers. The pages in `docs/` list the
descriptors. To add a controller, add its package and one line in `registry`.

Every command imports all descriptors, so the packages of controllers import no large modules. The field `builder`
contains the name of the function that builds the controller. Only the method `build` imports that function.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.user import AUTHENTICATED, User
from ctrlmgr.authentication.user_names import ServiceAccountName
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule

# This import is for type checkers only, because importing a descriptor must not load the engine and the log.
if TYPE_CHECKING:
    from random import Random

    from ctrlmgr.client import EngineClient
    from ctrlmgr.clock import Clock
    from ctrlmgr.controllers.events.recorder import Recorder
    from ctrlmgr.engine.write_engine import WriteEngine
    from ctrlmgr.eventlog import EventLog
    from ctrlmgr.informer import Informers
    from ctrlmgr.manager import Controller
    from ctrlmgr.scheduling.app_plugins import SchedulerPlugins

NAMESPACE: Final = "kube-system"
"""The namespace of the controllers' ServiceAccounts."""

MANAGER: Final = "system:kube-controller-manager"
"""The user of kube-controller-manager."""

SECTION = "controllers"
"""The section of the settings file that contains the options of all controllers."""


@dataclass(frozen=True)
class NoOptions:
    """The options of a controller that has no settings."""


class ControllerContext(Protocol):
    """The dependencies with which a controller is built."""

    @property
    def informers(self) -> Informers:
        """The informers. A controller requests its informers while it is built; the informers sync afterwards."""

    @property
    def event_log(self) -> EventLog:
        """The event log, to which outcomes of reconciles are written."""

    @property
    def clock(self) -> Clock:
        """The clock from which the controller reads the time."""

    @property
    def random(self) -> Random:
        """The source of random names and ids."""

    @property
    def engine(self) -> WriteEngine:
        """The API's engine, from which the existing kinds can be read."""

    @property
    def root_ca(self) -> str:
        """The certificate of this server's certificate authority (PEM)."""

    @property
    def at_once(self) -> int:
        """The number of objects that a reconcile may write concurrently, in threads.

        The value 1 means that writes are sequential.
        """

    @property
    def recalls(self) -> bool:
        """Return whether controllers restore their state from the objects that exist when they start.

        Kubernetes' controllers start without state. A replay continues a recording, during which the controllers did
        not restart.
        """

    @property
    def scheduler_plugins(self) -> SchedulerPlugins:
        """Return the scheduler plugins of the apps in this process."""

    def client(self, descriptor: ControllerDescriptor[Any], *, canonical: bool = False) -> EngineClient:
        """Return a client that writes as the user of the controller.

        If `canonical` is set, the caller guarantees that it writes objects in their final form, which
        `engine.verbs.canonical_writes` defines.
        """

    def apiserver_client(self) -> EngineClient:
        """Return a client for writes of the API server itself.

        A process that is not the leader may make these writes, too.
        """

    def recorder(self, descriptor: ControllerDescriptor[Any]) -> Recorder:
        """Return the recorder for the controller's Events."""


O = TypeVar("O")  # noqa: E741  # the options of a controller


class OwnedKind(NamedTuple):
    """A kind for which a replay expects the controller to write the same objects as the recorded controller.

    The field `manager` contains the field manager of the recorded writes. The field `parent` contains the kind of the
    owner, an object that has the same name and lifetime. Changes of the kinds in `causes` trigger the controller.
    """

    resource: Resource
    manager: str
    parent: Resource
    causes: tuple[Resource, ...]


@dataclass(frozen=True, kw_only=True)
class ControllerDescriptor(Generic[O]):
    """The declaration of one controller.

    The fields `name` and `aliases` contain the controller's names in kube-controller-manager. `--controllers` also
    accepts each alias, and each former name of the controller in ctrlmgr. The field `component` contains the source of
    the controller's Events. The field `account` contains the name of its ServiceAccount in kube-system. The default of
    both fields is `name`.
    """

    name: str
    does: str
    """A phrase that says what the controller does, for tables in the documentation."""
    builder: str
    """The name of the function that builds the controller, in the format `package.module:function`. The function gets a
    `ControllerContext` and the options, before the informers sync.
    """
    options: type[O]
    """The class of the options: `NoOptions`, or a frozen dataclass whose fields are settings in the section
    `[controllers]`.
    """
    aliases: tuple[str, ...] = ()
    former_names: tuple[str, ...] = ()
    component: str = ""
    account: str = ""
    acts_as: str = ""
    """The user as which the controller acts instead of its ServiceAccount: kube-controller-manager, or another
    component.
    """
    rules: tuple[PolicyRule, ...] = ()
    """The permissions of a controller that does not exist in Kubernetes; other controllers have Kubernetes' roles."""
    tells_in_series: bool = False
    """Whether the controller writes Events of the newer API, `events.k8s.io`; see `controllers.events.recorder`."""
    watches: tuple[Resource, ...] = ()
    owns: tuple[Resource, ...] = ()
    """The kinds that the controller creates and deletes."""
    enabled_by_default: bool = True
    feature_gates: tuple[str, ...] = ()
    """The feature gates without which the controller does not run; all gates must be on."""
    starts_first: bool = False
    """Whether the controller starts before the other controllers, because the other controllers need the objects that
    this controller creates.
    """
    debug_pages: tuple[str, ...] = ()
    """The names of the controller's debug pages below `/debug/controllers/NAME`; its reconciler is a `Debuggable`."""
    replays: bool = False
    """Whether a replay runs the controller."""
    replayed_kinds: tuple[OwnedKind, ...] = ()
    """The kinds whose objects a replay compares one by one."""
    shared_kinds: tuple[Resource, ...] = ()
    """The kinds that other clients also write. For each change of an object of a shared kind, a replay determines
    whether the controller wrote the change.
    """
    replay_needs: tuple[Resource, ...] = ()
    """The kinds that a recording must contain, because the controller would decide wrongly without them. If a recording
    lacks one of these kinds, a replay treats the controller's changes as inputs.
    """

    def build(self, context: ControllerContext, options: O) -> Controller:
        """Build the controller; the caller must do this before the informers sync."""
        module, _, function = self.builder.partition(":")
        builder: Callable[[ControllerContext, O], Controller] = getattr(importlib.import_module(module), function)
        return builder(context, options)

    @property
    def event_source(self) -> str:
        """The component that the controller's Events name as their source."""
        return self.component or self.name

    @property
    def service_account(self) -> str:
        """The name of the controller's ServiceAccount in kube-system."""
        return self.account or self.name

    @property
    def user(self) -> str:
        """The user name under which the controller writes."""
        return self.as_user.name

    @property
    def as_user(self) -> User:
        """The user as which the controller acts: its ServiceAccount, or the user in `acts_as`."""
        if self.acts_as:
            return User(self.acts_as, "", (AUTHENTICATED,))
        return ServiceAccountName(NAMESPACE, self.service_account).user
