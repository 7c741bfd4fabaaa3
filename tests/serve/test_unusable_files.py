"""Tests of invalid files: `ctrlmgr serve` exits at its start, and prints the file, the line number if there is one, and
the reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.cli import ExitCode
from tests.cli.conftest import Run
from tests.cli.conftest import run as run  # the fixture

HALF = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
POLICY = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None}]}"
OPEN = "a: [\n"
TOKENS = "--authentication-token-webhook-config-file"
RIGHTS = "--authorization-webhook-config-file"
KUBELETS = "--cluster-signing-kubelet-client-cert-file"
MODE = "--authorization-mode=Webhook"

ISSUER = """apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://issuer.example.com, audiences: [here]}
  claimMappings: {username: {expression: claims.sub}}
"""
NO_AGE = "FILE:7: compilation failed: ERROR: <input>:1:5: undefined field 'age'"

UNUSABLE = [
    ("--token-auth-file", "t,u,1\nt,u\n", "FILE:2: write token,user,uid"),
    ("--client-ca-file", "nonsense", "FILE cannot be used: line 1: there is no certificate"),
    ("--client-ca-file", f"\n{HALF}", "FILE cannot be used: line 2: the certificate that begins here cannot be read"),
    ("--requestheader-client-ca-file", HALF, "FILE cannot be used: line 1: the certificate that begins here"),
    ("--root-ca-file", "nonsense", "FILE cannot be used: line 1: there is no certificate"),
    ("--service-account-key-file", "nonsense", "FILE cannot be used: it does not contain any valid RSA or ECDSA"),
    ("--service-account-signing-key-file", "nonsense", "FILE cannot be used: it does not contain a valid RSA or ECDSA"),
    ("--service-account-private-key-file", "nonsense", "FILE cannot be used: it does not contain a valid RSA or ECDSA"),
    (KUBELETS, "nonsense", "the key file has no private key that can be read"),
    ("--cluster-signing-cert-file", "nonsense", "the key file has no private key that can be read"),
    ("--authentication-config", OPEN, "FILE:2: not valid YAML"),
    ("--authentication-config", "\nkind: X\n", "FILE:2: kind must be AuthenticationConfiguration, not 'X'"),
    ("--authentication-config", f"{ISSUER}  userValidationRules:\n  - expression: user.age\n", NO_AGE),
    (TOKENS, OPEN, "FILE:2: not valid YAML"),
    ("--oidc-ca-file", "nonsense", "FILE cannot be used: line 1: there is no certificate"),
    (TOKENS, "clusters: []\n", "FILE has no current context"),
    (RIGHTS, OPEN, "FILE:2: not valid YAML"),
    ("--authorization-config", OPEN, "FILE:2: not valid YAML"),
    ("--authorization-config", "\nkind: X\n", "FILE:2: kind must be AuthorizationConfiguration, not 'X'"),
    ("--audit-policy-file", OPEN, "FILE:2: not valid YAML"),
    ("--audit-policy-file", f"{POLICY[:-1]}, omit: 1}}", "FILE:1: Object contains unknown field `omit`"),
    ("--audit-webhook-config-file", OPEN, "FILE:2: not valid YAML"),
    ("--admission-control-config-file", OPEN, "FILE:2: not valid YAML"),
]


def serve(run: Run, folder: Path, flag: str, file: Path) -> tuple[int, str]:
    """Run `ctrlmgr serve` with a file, and with further options that the file needs."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    besides = {
        RIGHTS: [MODE],
        "--oidc-ca-file": ["--oidc-issuer-url=https://issuer.example.com", "--oidc-client-id=here"],
        "--audit-webhook-config-file": [f"--audit-policy-file={policy}"],
        KUBELETS: [f"--cluster-signing-kubelet-client-key-file={file}"],
        "--cluster-signing-cert-file": [f"--cluster-signing-key-file={file}"],
    }
    place = ["--database=memory:", f"--data-dir={folder / 'data'}", "--listen=127.0.0.1:0"]
    done = run("serve", *place, f"{flag}={file}", *besides.get(flag, []))
    return done.code, " ".join(done.err.split()).replace(str(file), "FILE")


@pytest.mark.parametrize(("flag", "text", "problem"), UNUSABLE)
def test_an_unusable_file_is_refused(run: Run, tmp_path: Path, flag: str, text: str, problem: str) -> None:
    file = tmp_path / "unusable"
    file.write_text(text)
    file.chmod(0o600)
    code, said = serve(run, tmp_path, flag, file)
    assert code == ExitCode.USAGE
    assert said.startswith("error: ")
    assert problem in said


@pytest.mark.parametrize("flag", sorted({flag for flag, _, _ in UNUSABLE}))
def test_a_missing_file_is_refused(run: Run, tmp_path: Path, flag: str) -> None:
    code, said = serve(run, tmp_path, flag, tmp_path / "none")
    assert code == ExitCode.USAGE
    assert said.startswith("error: ")
    assert "FILE" in said
