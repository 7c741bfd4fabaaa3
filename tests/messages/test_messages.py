from __future__ import annotations

from pathlib import Path

import pytest

from tests.messages.comparing import (
    KubernetesMessages,
    justifies,
    kubernetes,
    literals,
    own,
    shown,
    unjustified,
    unknown,
)
from tests.messages.reading import of_go, ours

KNOWN = kubernetes()
UNKNOWN = unknown(KNOWN, literals())


def test_each_message_is_kubernetes_or_has_a_justification() -> None:
    """This test fails for a validation rule without a source: `python -m tests.messages` prints the rule's message and
    its place.
    """
    assert [f"{each.module}: {shown(each.text)}" for each in unjustified(UNKNOWN)] == []


def test_justified_messages_exist() -> None:
    texts = {shown(each.text) for each in UNKNOWN}
    assert [entry for entry in own() if not any(justifies(entry, text) for text in texts)] == []


@pytest.mark.parametrize(("text", "is_so"), [("{} is odd", True), ("it is odd", True), ("it is odder", False)])
def test_an_entry_matches_formatted_messages(text: str, is_so: bool) -> None:
    assert justifies("{} is odd", text) is is_so


@pytest.mark.parametrize(
    "source",
    [
        'required(path, "resource names cannot apply to multiple resources")',
        'invalid(path, name, f"{what} is wrong for roles of {name}")',
        'x = {"detail": "must never be like" + name}',
    ],
)
def test_an_entry_without_a_source_is_reported(source: str, tmp_path: Path) -> None:
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "planted.py").write_text(source, encoding="utf-8")
    (found,) = unknown(KNOWN, ours(tmp_path, ("kinds",)))
    assert (found.module, found.line) == ("kinds/planted.py", 1)


def test_docstrings_are_no_messages(tmp_path: Path) -> None:
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "said.py").write_text('"""Says much of nothing."""\n', encoding="utf-8")
    assert list(ours(tmp_path, ("kinds",))) == []


def test_messages_of_go_are_read(tmp_path: Path) -> None:
    (tmp_path / "validation.go").write_text(
        """package validation
        // "a comment is none"
        const detail = "must be at most " + "%d characters"
        func f() { klog.Infof("logged texts are none"); g(`raw texts are one`, "oneword", 'x') }
        """,
        encoding="utf-8",
    )
    (tmp_path / "validation_test.go").write_text('var x = "tests have none"', encoding="utf-8")
    assert list(of_go(tmp_path)) == ["must be at most %d characters", "raw texts are one"]


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ("must be at most 5 characters", True),
        ("must be at most \0 characters", True),
        ('"\0" of \0 must be at most 5 characters', True),
        ("x: must be at most 5 characters", True),
        ("must be at most 5 bytes", False),
        ("characters", True),
        ("ust be at most", False),
    ],
)
def test_messages_with_placeholders_are_found(text: str, is_known: bool) -> None:
    assert KubernetesMessages(["# must be at most 5 bytes", "must be at most %d characters"]).has(text) is is_known
