from __future__ import annotations

import pytest

from ctrlmgr.engine.validation.certificate_requests import authorities_problem


def block(kind: str, body: str = "AAAA") -> str:
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ""),
        ("x", "unable to parse bytes as PEM block"),
        (block("KEY"), "no valid certificate authority data seen"),
        (block("KEY") + block("CERTIFICATE"), "failed to parse certificate: x509: malformed certificate"),
    ],
)
def test_errors_of_an_unreadable_authority(text: str, problem: str) -> None:
    assert authorities_problem(text.encode()) == problem
