"""An app is a named group of controllers and kinds that belong together.

Guarantees: an app is only a declaration, which runs nothing. An invalid declaration immediately raises a TypeError with
the reason.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from ctrlmgr.api.resource import Key
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.framework.app_admission import Admit, AppAdmission
from ctrlmgr.framework.app_hooks import AppHook, Started, Stopping, named
from ctrlmgr.framework.class_declaration import Declaration, declaration_of, sequence_of
from ctrlmgr.framework.options_checks import check_count, check_list, check_seconds
from ctrlmgr.framework.typed_kinds import Kind, Untyped
from ctrlmgr.manager.reconcile_result import Result
from ctrlmgr.scheduling.app_plugins import SchedulerPlugins

if TYPE_CHECKING:  # This import is for type checkers only, because `reconcile_context` imports apps.
    from ctrlmgr.framework.cached_objects import Cache
    from ctrlmgr.framework.reconcile_context import Context

K = TypeVar("K")
T = TypeVar("T", bound=Kind)

Reconcile: TypeAlias = "Callable[[K, Context], Result | Coroutine[Any, Any, Result | None] | None]"
"""A reconcile function: a plain function or an async function."""
Target: TypeAlias = "str | Key | Kind | Untyped"
"""Identifies an object to reconcile: the object itself, its key or, if the object is in the namespace of the changed
object, its name.
"""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_OPERATIONS = ("CREATE", "UPDATE", "DELETE")
_FINALIZER = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class Watch:
    """An additional watch: when an object of `kind` changes, `to(object, cache)` returns the objects to reconcile.

    The function `to` is called twice, with the previous and with the new state of the changed object. The mapping
    function returns names, keys or objects, and must not wait.
    """

    kind: type[Kind] | str
    to: Callable[[Any, Cache], Iterable[Target]]

    @property
    def declaration(self) -> Declaration:
        """Return the declaration of the watched kind."""
        return declaration_of(self.kind)


@dataclass(eq=False)
class AppController(Generic[K]):
    """One controller of an app, which `App.controller` creates; calling the instance calls the reconcile function."""

    name: str
    declaration: Declaration
    function: Reconcile[K]
    owns: tuple[Declaration, ...] = ()
    watches: tuple[Watch, ...] = ()
    reads: tuple[Declaration, ...] = ()
    workers: int = 1
    resync: float | None = None
    max_retries: int | None = None
    finalizer: str = ""
    cleanup: Reconcile[K] | None = field(default=None, repr=False)
    is_daemon: bool = False
    """Whether the reconcile function is a generator or async generator, which runs as long as the object exists."""

    def __call__(self, obj: K, context: Context) -> Any:
        """Call the decorated function.

        Call the reconcile function; return its `Result` or None, or an awaitable that returns a `Result` or None.
        """
        return self.function(obj, context)

    def finalize(self, name: str) -> Callable[[Reconcile[K]], Reconcile[K]]:
        """Return a decorator for the function that is called when an object is deleted.

        The deleted object continues to exist until the function returns None. `name` is the finalizer, such as
        `example.com/bucket`. The finalizer is added to every object before the object's first reconcile.
        """
        if not isinstance(name, str):
            raise TypeError(
                f"finalize needs the name of the finalizer: `@{self.function.__name__}.finalize('example.com/bucket')`"
            )
        if not _FINALIZER.fullmatch(name):
            raise TypeError(f"{name!r} is not a valid name of a finalizer; write a name such as `example.com/bucket`")
        if self.cleanup is not None:
            raise TypeError(f"controller {self.name} has a finalizer already: {self.finalizer}")

        def decorate(function: Reconcile[K]) -> Reconcile[K]:
            _check_function(function, self.name)
            self.finalizer, self.cleanup = name, function
            return function

        return decorate

    @property
    def does(self) -> str:
        """Return a short description of the controller, for its `repr`."""
        text = (self.function.__doc__ or "").strip().split("\n")[0].rstrip(".")
        return text or f"{self.declaration.label} as {self.where} has it"

    @property
    def where(self) -> str:
        """Return the file and line where the reconcile function is declared."""
        return f"{self.function.__module__}:{self.function.__qualname__}"

    @property
    def declared(self) -> tuple[Declaration, ...]:
        """Return every kind that the controller declares, with duplicates."""
        return (self.declaration, *self.owns, *(each.declaration for each in self.watches), *self.reads)

    @property
    def kinds(self) -> tuple[Declaration, ...]:
        """Return every kind that the controller reads, without duplicates."""
        return tuple({each.resource: each for each in reversed(self.declared)}.values())


class App:
    """A named group of controllers and kinds."""

    def __init__(self, name: str, *, kinds: Sequence[type[Kind]] = ()) -> None:
        """Create an app without controllers; `kinds` contains further kinds of the app, which no controller uses."""
        if not _NAME.fullmatch(name):
            raise TypeError(f"{name!r} is not a valid name of an app; write a name such as `shop`")
        self.name = name
        self.controllers: list[AppController[Any]] = []
        self.admissions: list[AppAdmission] = []
        self.started_hooks: list[AppHook] = []
        self.stopping_hooks: list[AppHook] = []
        self.scheduler = SchedulerPlugins()
        """The app's plugins of the scheduler; `@app.scheduler.filter` and `@app.scheduler.score` add functions."""
        self._kinds = sequence_of(kinds, "kinds")

    @property
    def kinds(self) -> Sequence[Declaration]:
        """Return the kinds whose CustomResourceDefinitions belong to this app."""
        found = [*self._kinds, *(kind for each in self.controllers for kind in each.kinds)]
        found += [each.declaration for each in self.admissions]
        return [*{each.resource: each for each in found if not each.existing and each.cls is not None}.values()]

    @overload
    def controller(
        self,
        kind: type[T],
        *,
        name: str = "",
        owns: Sequence[type[Kind] | str] = (),
        watches: Sequence[Watch] = (),
        reads: Sequence[type[Kind] | str] = (),
        workers: int = 1,
        resync: float | None = None,
        max_retries: int | None = None,
    ) -> Callable[[Reconcile[T]], AppController[T]]: ...

    @overload
    def controller(
        self,
        kind: str,
        *,
        name: str = "",
        owns: Sequence[type[Kind] | str] = (),
        watches: Sequence[Watch] = (),
        reads: Sequence[type[Kind] | str] = (),
        workers: int = 1,
        resync: float | None = None,
        max_retries: int | None = None,
    ) -> Callable[[Reconcile[Untyped]], AppController[Untyped]]: ...

    def controller(
        self,
        kind: Any,
        *,
        name: str = "",
        owns: Sequence[type[Kind] | str] = (),
        watches: Sequence[Watch] = (),
        reads: Sequence[type[Kind] | str] = (),
        workers: int = 1,
        resync: float | None = None,
        max_retries: int | None = None,
    ) -> Callable[[Reconcile[Any]], AppController[Any]]:
        """Return a decorator that makes a function a controller of `kind`, which is a class or a name such as `v1/Pod`.

        The function is called for an object when the object changes, or when an object that it owns changes, if the
        kind of the owned object is in `owns`. The function is also called when a watch in `watches` returns the object,
        after the seconds in the function's `Result` or in `resync`, and after the function raised an error. `reads`
        contains kinds that the controller reads but neither watches nor writes. At most `workers` objects are
        reconciled at a time, each by one worker. After 1 + `max_retries` consecutive failures, an object is reconciled
        again only when it changes. `name` is the controller's name; by default it is the function's name. An async
        function runs on the event loop that all async functions of the process share; a worker waits until it has
        returned.
        """
        declaration, owned, read = declaration_of(kind), sequence_of(owns, "owns"), sequence_of(reads, "reads")
        check_list("watches", watches, '[Watch("v1/Pod", function)]', of=Watch)
        check_count("workers", workers, 1)
        if resync is not None:
            check_seconds("resync", resync)
        if max_retries is not None:
            check_count("max_retries", max_retries, 0)

        def decorate(function: Reconcile[Any]) -> AppController[Any]:
            chosen = name or function.__name__.replace("_", "-").lower()
            if not _NAME.fullmatch(chosen):
                raise TypeError(
                    f"{chosen!r} is not a valid name of a controller; write a name such as `shop-controller`"
                )
            _check_function(function, chosen)
            controller = AppController(
                chosen,
                declaration,
                function,
                owned,
                tuple(watches),
                read,
                workers,
                resync,
                max_retries,
            )
            self.controllers.append(controller)
            return controller

        return decorate

    def daemon(
        self,
        kind: type[Kind] | str,
        *,
        name: str = "",
        owns: Sequence[type[Kind] | str] = (),
        reads: Sequence[type[Kind] | str] = (),
        workers: int = 1,
    ) -> Callable[[Callable[[Any, Context], Iterator[float] | AsyncIterator[float]]], AppController[Any]]:
        """Return a decorator for a generator that runs for each object of `kind`: `yield 5` sleeps for five seconds.

        The generator starts when the object is created. When the object is deleted, `GeneratorExit` is raised at the
        generator's `yield`, so that the generator can clean up in `finally`. In the generator, `yield` returns the
        current object. At most `workers` generators run at a time; blocking code occupies a worker. The daemon's
        generator may be async.
        """

        def decorate(function: Callable[[Any, Context], Iterator[float] | AsyncIterator[float]]) -> AppController[Any]:
            if not (inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)):
                raise TypeError(f"daemon {function.__name__}: a daemon is a generator, in which `yield 5` sleeps")
            make = self.controller(kind, name=name, owns=owns, reads=reads, workers=workers)
            made = make(function)  # type: ignore[arg-type]  # `is_daemon` says that it is no reconcile
            made.is_daemon = True
            return made

        return decorate

    def admission(
        self,
        kind: type[Kind] | str,
        *,
        name: str = "",
        operations: Sequence[str] = ("CREATE", "UPDATE"),
        subresource: str = "",
        validates: bool = False,
        on: str | Sequence[str] = (),
    ) -> Callable[[Admit], AppAdmission]:
        """Return a decorator for a function that is called before writes of `kind` are stored.

        The function's arguments are the object and the `Write`. The admission function changes the object in place,
        raises `Refused` to refuse the write, or does nothing. `operations` are some of `CREATE`, `UPDATE`, `DELETE`;
        `subresource` is for example `status`, or empty for writes of the object itself. If `validates` is set, the
        function is called with the complete object, and must not change the object. `on` are fields such as `spec` or
        `spec.replicas`; the function is called only for updates that change one of these fields. `name` is the name
        that `--disable-admission-plugins` accepts; by default it is the function's name.
        """
        declaration = declaration_of(kind)
        check_list("operations", operations, '["CREATE"]')

        def decorate(function: Admit) -> AppAdmission:
            chosen = name or function.__name__.replace("_", "-").lower()
            if not _NAME.fullmatch(chosen):
                raise TypeError(
                    f"{chosen!r} is not a valid name of an admission plugin; write a name such as `shop-limits`"
                )
            _check_plain(function, f"admission plugin {chosen}")
            _check_two(function, f"admission plugin {chosen}", "it takes two things, the object and the write")
            unknown = [each for each in operations if each not in _OPERATIONS]
            if unknown or not operations:
                raise TypeError(f"admission plugin {chosen}: operations must be of {', '.join(_OPERATIONS)}")
            verbs = tuple(Verb(each) for each in operations)
            fields = (on,) if isinstance(on, str) else tuple(on)
            declared = AppAdmission(chosen, declaration, function, verbs, subresource, validates, fields)
            self.admissions.append(declared)
            return declared

        return decorate

    def on_started(self, *, name: str = "") -> Callable[[Started], Started]:
        """Return a decorator for a function that every process calls once after its start, on its own thread.

        The function's argument is an event that is set when the process stops. The process is ready only when the
        function has returned. A function that raises an error is called again after a backoff, so the function must be
        idempotent. `name` is the name in `/readyz`; by default it is the function's name.
        """

        def decorate(function: Started) -> Started:
            self.started_hooks.append(named(function, name, 1, self.started_hooks))
            return function

        return decorate

    def on_stopping(self, *, name: str = "") -> Callable[[Stopping], Stopping]:
        """Return a decorator for a function that every process calls once when it stops.

        The app's controllers have finished when the function is called, and the server still serves. An error is
        logged, and the process still stops. `name` is the name in log lines; by default it is the function's name.
        """

        def decorate(function: Stopping) -> Stopping:
            self.stopping_hooks.append(named(function, name, 0, self.stopping_hooks))
            return function

        return decorate


def _check_function(function: Callable[..., Any], name: str) -> None:
    _check_two(function, f"controller {name}", "reconcile takes two things, the object and the context")


def _check_two(function: Callable[..., Any], who: str, problem: str) -> None:
    parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    if len(parameters) != 2:
        raise TypeError(f"{who}: {problem}")


def _check_plain(function: Callable[..., Any], who: str) -> None:
    if inspect.iscoroutinefunction(function):
        raise TypeError(
            f"{who}: {function.__name__} is an async function, but a write waits for it: write `def`, and"
            " `asyncio.run(…)` around what must be awaited"
        )
