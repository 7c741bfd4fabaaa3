"""Apps: the controllers and kinds that belong together, and run together wherever they run.

Guarantees: an app is a declaration and does nothing; what cannot be right is refused where it is declared, with a
TypeError that says what.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from ctrlmgr.api.resource import Key
from ctrlmgr.engine.attributes import Verb
from ctrlmgr.framework.admission import Admit, AppAdmission
from ctrlmgr.framework.declaration import Declaration, declaration_of, sequence_of
from ctrlmgr.framework.model import Kind, Untyped
from ctrlmgr.manager.reconcile import Result

if TYPE_CHECKING:  # a context knows of apps
    from ctrlmgr.framework.context import Context
    from ctrlmgr.framework.reading import Cache

K = TypeVar("K")
T = TypeVar("T", bound=Kind)

Reconcile: TypeAlias = "Callable[[K, Context], Result | None]"
Target: TypeAlias = "str | Key | Kind | Untyped"
"""Which object to look at: its name, in the namespace of what changed; its key; or itself."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_OPERATIONS = ("CREATE", "UPDATE", "DELETE")
_FINALIZER = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class Watch:
    """Something else to look at: when an object of `kind` changes, `to(object, cache)` says whom that concerns.

    `to` is asked of the object as it was and as it is, and returns names, keys or objects. It must not wait.
    """

    kind: type[Kind] | str
    to: Callable[[Any, Cache], Iterable[Target]]

    @property
    def declaration(self) -> Declaration:
        """What is watched."""
        return declaration_of(self.kind)


@dataclass(eq=False)
class AppController(Generic[K]):
    """One controller of an app, made by `App.controller`; calling it calls the function."""

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
    """Whether the function is a generator, which lasts as long as the object."""

    def __call__(self, obj: K, context: Context) -> Result | None:
        """Reconcile."""
        return self.function(obj, context)

    def finalize(self, name: str) -> Callable[[Reconcile[K]], Reconcile[K]]:
        """Have a function called when an object is deleted, and the object kept until that returns None.

        `name` is the finalizer, such as `example.com/bucket`: it is on every object before the first reconcile.
        """
        if not _FINALIZER.fullmatch(name):
            raise TypeError(f"{name!r} is no name of a finalizer; it looks like `example.com/bucket`")
        if self.cleanup is not None:
            raise TypeError(f"controller {self.name} has a finalizer already: {self.finalizer}")

        def decorate(function: Reconcile[K]) -> Reconcile[K]:
            _check_function(function, self.name)
            self.finalizer, self.cleanup = name, function
            return function

        return decorate

    @property
    def does(self) -> str:
        """What it sees to, in a phrase."""
        text = (self.function.__doc__ or "").strip().split("\n")[0].rstrip(".")
        return text or f"{self.declaration.label} as {self.where} has it"

    @property
    def where(self) -> str:
        """Where it is declared."""
        return f"{self.function.__module__}:{self.function.__qualname__}"

    @property
    def declared(self) -> tuple[Declaration, ...]:
        """Every kind that it names, as often as it does."""
        return (self.declaration, *self.owns, *(each.declaration for each in self.watches), *self.reads)

    @property
    def kinds(self) -> tuple[Declaration, ...]:
        """Every kind that it reads, once."""
        return tuple({each.resource: each for each in reversed(self.declared)}.values())


class App:
    """Controllers and kinds under one name."""

    def __init__(self, name: str, *, kinds: Sequence[type[Kind]] = ()) -> None:
        """Start with no controllers; `kinds` are those that no controller of this app deals with."""
        if not _NAME.fullmatch(name):
            raise TypeError(f"{name!r} is no name of an app; it looks like `shop`")
        self.name = name
        self.controllers: list[AppController[Any]] = []
        self.admissions: list[AppAdmission] = []
        self._kinds = sequence_of(kinds)

    @property
    def kinds(self) -> Sequence[Declaration]:
        """The kinds whose definitions are this app's."""
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
        """Make a function the controller of `kind`, a class or a name such as `v1/Namespace`.

        It is called for an object when that changes, when something changes that it `owns` (has applied as owned), when
        one of its `watches` says so, when its `Result` or `resync` (seconds) does, and after it has raised. `reads` are
        kinds that it only looks at. `workers` objects are reconciled at a time, one by one worker at most. An object
        that failed 1 + `max_retries` times waits for its next change. `name` is by default the function's.
        """

        def decorate(function: Reconcile[Any]) -> AppController[Any]:
            chosen = name or function.__name__.replace("_", "-").lower()
            if not _NAME.fullmatch(chosen):
                raise TypeError(f"{chosen!r} is no name of a controller; it looks like `shop-controller`")
            _check_function(function, chosen)
            if workers < 1:
                raise TypeError(f"controller {chosen} has {workers} workers")
            controller = AppController(
                chosen,
                declaration_of(kind),
                function,
                sequence_of(owns),
                tuple(watches),
                sequence_of(reads),
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
    ) -> Callable[[Callable[[Any, Context], Iterator[float]]], AppController[Any]]:
        """Have a generator run for each object of `kind` while that exists: `yield 5` sleeps for five seconds.

        It begins with the object, and ends with a `GeneratorExit` at its `yield` when the object is deleted, so that
        `finally` cleans up. `yield` returns the object as it is then. Of `workers` objects it runs at a time; code that
        blocks holds a worker.
        """

        def decorate(function: Callable[[Any, Context], Iterator[float]]) -> AppController[Any]:
            if not inspect.isgeneratorfunction(function):
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
        """Have a function called for writes of `kind` before they are stored: `function(object, write)`.

        It changes the object in place, raises `Refused` to refuse the write, or does nothing. `operations` are of
        `CREATE`, `UPDATE`, `DELETE`; `subresource` is `status`, say, or empty for the object itself. With `validates`
        it is called when the object is complete, and only judges. With `on`, fields such as `spec` or `spec.replicas`,
        an update that changes none of them passes; the removal of a finalizer is one. `name` is by default the
        function's; the settings `--disable-admission-plugins` knows it.
        """

        def decorate(function: Admit) -> AppAdmission:
            chosen = name or function.__name__.replace("_", "-").lower()
            if not _NAME.fullmatch(chosen):
                raise TypeError(f"{chosen!r} is no name of an admission plugin; it looks like `shop-limits`")
            _check_two(function, f"admission plugin {chosen}", "it takes two things, the object and the write")
            unknown = [each for each in operations if each not in _OPERATIONS]
            if unknown or not operations:
                raise TypeError(f"admission plugin {chosen}: operations are of {', '.join(_OPERATIONS)}")
            verbs = tuple(Verb(each) for each in operations)
            fields = (on,) if isinstance(on, str) else tuple(on)
            declared = AppAdmission(chosen, declaration_of(kind), function, verbs, subresource, validates, fields)
            self.admissions.append(declared)
            return declared

        return decorate


def _check_function(function: Callable[..., Any], name: str) -> None:
    if inspect.iscoroutinefunction(function):
        raise TypeError(
            f"controller {name}: {function.__name__} is an async function, and controllers run on threads: write `def`,"
            " and `asyncio.run(…)` around what must be awaited"
        )
    _check_two(function, f"controller {name}", "reconcile takes two things, the object and the context")


def _check_two(function: Callable[..., Any], who: str, problem: str) -> None:
    parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    if inspect.iscoroutinefunction(function) or len(parameters) != 2:
        raise TypeError(f"{who}: {problem}")
