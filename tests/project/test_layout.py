"""Tests that the folders of tests mirror the package, and that each test checks something.

- The tests of a folder of `ctrlmgr` are in the folder with the same path in `tests`, or in one file with its name
  beside that place; `TESTED_ELSEWHERE` lists the exceptions.
- A test function must assert, expect an error, or call a helper whose name says that it checks something (`CHECKS`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ctrlmgr"
TESTS = ROOT / "tests"

TESTED_ELSEWHERE = {
    "serve/simulation": "e2e/workloads/test_metrics_of_simulated_nodes.py",
    "admission/expressions": "admission/policies",  # only policies and webhooks evaluate them
    "controllers/certificatesigningrequest_approving": "controllers/test_certificatesigningrequest_signing.py",
    "controllers/certificatesigningrequest_cleaner": "controllers/test_certificatesigningrequest_signing.py",
    "controllers/ephemeral_volume": "controllers/test_persistentvolume_expander.py",  # both change the claims of pods
    "controllers/persistentvolume_protection": "controllers/test_protection.py",  # one finalizer for three kinds
    "controllers/persistentvolumeclaim_protection": "controllers/test_protection.py",
    "controllers/volumeattributesclass_protection": "controllers/test_protection.py",
    "controllers/simulated_load_balancer": "controllers/simulated_nodes",  # only simulated clusters use it
    "controllers/token_cleaner": "controllers/bootstrap_signer",  # both act on bootstrap tokens
    "controllers/ttl": "controllers/node_ipam",  # both count nodes
    "expressions/library": "expressions",  # expressions call the functions
    "extensions/paths": "extensions/test_validation.py",  # the paths occur in schemas that are validated
    "framework/project": "cli/operators",  # only `ctrlmgr new` writes a project
    "kinds/apps": "kinds/refusals",  # one table of refused objects for each kind
    "kinds/autoscaling": "kinds/refusals",
    "kinds/core/pod/volumes": "kinds/core/pod",  # volumes are tested in pods
    "kinds/events": "kinds/core/test_core_event.py",  # one kind in two groups
    "kinds/node": "kinds/test_class_kinds.py",  # one test for all classes
    "kinds/policy": "kinds/refusals",
    "kinds/rbac": "kinds/refusals",
}
"""Folders of the package without a folder of tests, each with the tests that cover the folder."""

CHECKS = (
    "check",
    "assert",
    "raises",
    "fail",
    "warns",
    "expect",
    "until",
    "wait_until",
    "eventually",
    "run_state_machine",
)
"""Prefixes of the names of functions that check something: our helpers, pytest's functions, Playwright's `expect`,
waits with a deadline, and Hypothesis' `run_state_machine_as_test`.
"""

RAISES_NOTHING = {
    "test_the_control_plane_and_administrators_can_write_the_lease",
    "test_tables_of_later_migrations_can_be_used",
    "test_appends_compactions_and_restores_of_others_are_no_rewrite",
    "test_the_port_is_released_by_stop",
    "test_a_client_that_trusts_the_authority_accepts_every_name",
    "test_an_incomplete_pair_is_recreated",
    "test_a_query_file_grants_no_rights",
    "test_queries_are_accepted",
    "test_characters_in_strings_are_not_counted_as_values",
    "test_frames_are_read_while_threads_start_and_objects_are_collected",
}
"""Tests that only check that a call raises no error."""


def folders() -> list[str]:
    """Return the folders of the package that have modules."""
    found = {path.parent for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"}
    return sorted(path.relative_to(PACKAGE).as_posix() for path in found - {PACKAGE})


def has_tests(folder: str) -> bool:
    own = TESTS / folder
    return any(own.rglob("test_*.py")) or own.with_name(f"test_{own.name}.py").is_file()


@pytest.mark.parametrize("folder", folders())
def test_tests_mirror_the_package(folder: str) -> None:
    assert has_tests(folder) != (folder in TESTED_ELSEWHERE)


def test_packages_tested_elsewhere_exist_and_are_tested_there() -> None:
    assert set(TESTED_ELSEWHERE) <= set(folders())
    assert [place for place in TESTED_ELSEWHERE.values() if not (TESTS / place).exists()] == []


def checks(function: ast.AST) -> bool:
    """Return whether a function asserts, or calls a function that checks."""
    return any(isinstance(node, ast.Assert) or _is_check(node) for node in ast.walk(function))


def _is_check(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name.lstrip("_").startswith(CHECKS)
    return False


def without_a_check(module: ast.Module) -> Iterator[str]:
    """Yield the names of test functions that contain no check."""
    for node in ast.walk(module):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("test_")
            and not checks(node)
        ):
            yield node.name


def test_every_test_checks_something() -> None:
    files = [*TESTS.rglob("test_*.py"), *(PACKAGE / "testing").rglob("*.py")]
    found = {path: list(without_a_check(ast.parse(path.read_text(encoding="utf-8")))) for path in files}
    bare = {name: path for path, names in found.items() for name in names}
    assert {f"{path.relative_to(ROOT)}: {name}" for name, path in bare.items() if name not in RAISES_NOTHING} == set()
    assert bare.keys() >= RAISES_NOTHING


def test_a_test_that_checks_nothing_is_found() -> None:
    module = ast.parse(
        "def test_a():\n  x()\ndef test_b():\n  assert x\ndef test_c():\n  assert_x()\nasync def test_d(): x()"
    )
    assert list(without_a_check(module)) == ["test_a", "test_d"]
