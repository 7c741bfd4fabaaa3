"""Tests of typical mistakes in apps: each error is one line with the cause, the place and the remedy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctrlmgr import cli

HEAD = """from typing import Annotated
from ctrlmgr import App, Context, Kind, Meta, Metadata, Model
from ctrlmgr.testing import Harness

app = App("shop")
"""
SHOP = """
class Shop(Kind, api_version="example.com/v1"):
    spec: Model = Model()
"""
CONTROLLER = """
@app.controller(Shop)
def shop_controller(shop: Shop, context: Context) -> None:
    BODY
"""


def controller(body: str = "pass", *, options: str = "", define: str = "def", parameters: str = "") -> str:
    """Return a controller of the kind Shop."""
    text = CONTROLLER.replace("BODY", body).replace("(Shop)", f"(Shop{options})").replace("def ", f"{define} ")
    return text.replace("(shop: Shop, context: Context)", parameters) if parameters else text


class Mistake(NamedTuple):
    """A file with a mistake, and the cause, place and remedy that the error line must contain."""

    text: str
    cause: str
    place: str
    remedy: str


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
LOADING = {
    "an API version without a version": Mistake(
        SHOP.replace("example.com/v1", "example.com"), "the API version 'example.com' is not valid", "shopfile.py:7",
        "write a version such as `example.com/v1`",
    ),
    "a class keyword of another spelling": Mistake(
        SHOP.replace('v1"', 'v1", shortnames=["sh"]'), "Shop: a kind has no argument shortnames=", "shopfile.py:7",
        "did you mean short_names=?",
    ),
    "a pattern that is none": Mistake(
        'class Spec(Model):\n    code: Annotated[str, Meta(pattern="[A-Z")]\n', "the pattern '[A-Z' is no regular",
        "shopfile.py:7", "unterminated character set",
    ),
    "a kind that is misspelt": Mistake(
        SHOP + controller(options=', owns=["v1/Cofigmap"]'), "the core group has no kind 'Cofigmap'", "shopfile.py:10",
        "did you mean v1/ConfigMap?",
    ),
    "an async admission function": Mistake(
        SHOP + controller(define="async def").replace("app.controller", "app.admission"),
        "shop_controller is an async function", "shopfile.py:10", "write `def`",
    ),
    "a controller of one argument": Mistake(
        SHOP + controller(parameters="(shop: Shop)"), "reconcile takes two things", "shopfile.py:10",
        "the object and the context",
    ),
    "two controllers of one name": Mistake(
        SHOP + controller() * 2, "two controllers are called shop-controller", "shopfile:shop_controller",
        "give one of them another name with name=",
    ),
    "a finalizer without a domain": Mistake(
        SHOP + controller() + "shop_controller.finalize('cleanup')(shop_controller.function)",
        "'cleanup' is not a valid name of a finalizer", "shopfile.py:13", "write a name such as `example.com/bucket`",
    ),
    "a field that no definition can have": Mistake(
        SHOP.replace("spec: Model = Model()", "spec: tuple[int, str]") + controller(),
        "a definition cannot express Tuple",
        "shopfile.py:7", "use str, int, float",
    ),
    "a decorator without its parentheses": Mistake(
        SHOP + controller().replace("(Shop)", ""), "the decorator of shop_controller takes a kind", "shopfile.py:10",
        "a class in parentheses",
    ),
    "a keyword of another spelling": Mistake(
        SHOP + controller(options=', own=["v1/Pod"]'), "unexpected keyword argument 'own'", "shopfile.py:10",
        "did you mean owns=?",
    ),
    "a decorator of another spelling": Mistake(
        SHOP + controller().replace("app.c", "app.k"), "no attribute 'kontroller'", "shopfile.py:10",
        "did you mean controller?",
    ),
    "one kind where a list is due": Mistake(
        SHOP + controller(options=', owns="v1/Pod"'), "owns='v1/Pod' is not a list", "shopfile.py:10",
        "write `owns=['v1/Pod']`",
    ),
    "a kind among the watches": Mistake(
        SHOP + controller(options=', watches=["v1/Pod"]'),
        "watches=['v1/Pod'] is not a list of Watch", "shopfile.py:10",
        'write `watches=[Watch("v1/Pod", function)]`',
    ),
    "a time that is a text": Mistake(
        SHOP + controller(options=', resync="5m"'), "resync='5m' is not a number of seconds", "shopfile.py:10",
        "write `resync=300`",
    ),
    "a number that is a text": Mistake(
        SHOP + controller(options=', workers="2"'), "workers='2' is not a whole number", "shopfile.py:10",
        "write `workers=1`",
    ),
    "a kind without an API version": Mistake(
        controller().replace("(Shop)", "('Deployment')"), "'Deployment' has no API version", "shopfile.py:7",
        "did you mean apps/v1/Deployment?",
    ),
    "a class that is no kind": Mistake(
        controller().replace("(Shop)", "(Model)"), "Model is not a kind", "shopfile.py:7",
        "a class made with `api_version=`",
    ),
    "one operation where a list is due": Mistake(
        SHOP + controller(options=', operations="CREATE"').replace("app.controller", "app.admission"),
        "operations='CREATE' is not a list", "shopfile.py:10", 'write `operations=["CREATE"]`',
    ),
    "a finalizer without its name": Mistake(
        SHOP + controller() + "shop_controller.finalize(shop_controller.function)",
        "finalize needs the name", "shopfile.py:13",
        "`@shop_controller.finalize('example.com/bucket')`",
    ),
    "one short name where a list is due": Mistake(
        SHOP.replace('v1"', 'v1", short_names="sh"'), "short_names='sh' is not a list", "shopfile.py:7",
        "write `short_names=['sh']`",
    ),
    "a column that is a path": Mistake(
        SHOP.replace('v1"', 'v1", columns=[".spec.size"]'), "is not a list of Column", "shopfile.py:7",
        'Column("Size", ".spec.size")',
    ),
    "a scope that is none": Mistake(
        SHOP.replace('v1"', 'v1", scope="Clustered"'), "scope='Clustered'", "shopfile.py:7",
        "neither Namespaced nor Cluster",
    ),
    "a constraint as JSON spells it": Mistake(
        "class Spec(Model):\n    size: Annotated[int, Meta(minLength=1)]\n", "'minLength' is an invalid keyword",
        "shopfile.py:7", "did you mean min_length=?",
    ),
    "a pattern that only Python knows": Mistake(
        SHOP.replace("spec: Model = Model()", 'code: Annotated[str, Meta(pattern="(?<=a)b")] = ""') + controller(),
        "API servers refuse the pattern '(?<=a)b'", "shopfile.py:7", "not a regular expression of RE2",
    ),
    "a default of another type": Mistake(
        SHOP.replace("spec: Model = Model()", 'size: int = "x"') + controller(), "its default 'x' is not allowed",
        "shopfile.py:7", "Expected `int`, got `str`",
    ),
    "a package that is missing": Mistake("import absent_package\n", "No module named 'absent_package'", "shopfile.py:6",
        "install it beside ctrlmgr",
    ),
}  # fmt: skip
RUNNING = {
    "a kind that the controller does not name": Mistake(
        controller('context.get("v1/Secret", "key")'), "controller shop-controller has no cache of v1/Secret",
        "default/corner", "name it in owns=, watches= or reads=",
    ),
    "a controller that returns something else": Mistake(
        controller("return True"), "returned True", "shopfile:shop_controller", "not a Result or None",
    ),
    "a condition without a place for it": Mistake(
        controller('context.condition("Ready", True, "Written")'), "has no status with conditions", "default/corner",
        "status: Status = Status()",
    ),
    "a field that does not exist": Mistake(
        controller("context.apply(" + repr({**POD, "spec": {"contianers": 1}}) + ")"),
        "default/corner", ".spec.contianers", "field not declared in schema",
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("shopfile", None)


def test_at_least_twelve_mistakes_are_tested() -> None:
    assert len(LOADING) + len(RUNNING) >= 12


@pytest.mark.parametrize("name", LOADING)
def test_a_mistake_in_a_file_ends_the_start_with_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text, *said = LOADING[name]
    (folder / "shopfile.py").write_text(HEAD + text)
    flags = ["--database", "memory:", "--listen", "127.0.0.1:0", "--data-dir", str(folder)]
    assert cli.run(["serve", "--app", "shopfile.py", *flags]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert [each for each in said if each not in line] == [], line


@pytest.mark.parametrize("name", RUNNING)
def test_a_mistake_in_a_reconcile_fails_the_test_with_one_line(folder: Path, name: str) -> None:
    from ctrlmgr.framework.module_files import import_file

    text, *said = RUNNING[name]
    (folder / "shopfile.py").write_text(HEAD + SHOP + text)
    module: Any = import_file(folder / "shopfile.py")
    cluster = module.Harness(module.app)
    cluster.create(module.Shop(metadata=module.Metadata(name="corner")))
    with pytest.raises(AssertionError) as raised:
        cluster.settle()
    [line] = str(raised.value).splitlines()
    assert [each for each in said if each not in line] == [], line
