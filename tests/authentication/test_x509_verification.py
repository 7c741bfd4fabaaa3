from __future__ import annotations

from datetime import timedelta

import pytest
from cryptography import x509

from ctrlmgr.authentication.user import CREDENTIAL_ID, CredentialsRefused
from ctrlmgr.authentication.x509_verification import (
    MOST_CHECKS,
    MOST_PRESENTED,
    Search,
    certificate_user,
    check_name,
    vouch,
)
from tests.authentication.authorities import CLIENT, NOW, SERVER, CertificateAndKey, authority, make, subject

AUTHORITY = authority()
SECONDS = NOW.timestamp()


def refused(*presented: CertificateAndKey, authorities: tuple[CertificateAndKey, ...] = (AUTHORITY,)) -> str:
    with pytest.raises(CredentialsRefused) as refusal:
        vouch([each.der for each in presented], [each.certificate for each in authorities], SECONDS)
    return refusal.value.explanation


def vouched(
    *presented: CertificateAndKey, authorities: tuple[CertificateAndKey, ...] = (AUTHORITY,)
) -> x509.Certificate:
    return vouch([each.der for each in presented], [each.certificate for each in authorities], SECONDS).leaf


def test_the_common_name_is_the_user_and_organizations_are_groups() -> None:
    carol = make(subject("carol", ["developers", "qa"], ["carol-uid"]), AUTHORITY)
    user = certificate_user(vouched(carol))
    assert user is not None
    assert user[:3] == ("carol", "carol-uid", ("developers", "qa"))
    assert user.extra[CREDENTIAL_ID][0].startswith("X509SHA256=")


def test_the_last_of_several_common_names_counts() -> None:
    user = certificate_user(make(subject("second", names=["first"]), AUTHORITY).certificate)
    assert user is not None
    assert user.name == "second"


def test_a_certificate_without_a_name_is_refused() -> None:
    assert certificate_user(vouched(make(subject(None, ["developers"]), AUTHORITY))) is None


@pytest.mark.parametrize("uids", [["a", "b"], [""]])
def test_the_uid_must_be_unique_and_not_empty(uids: list[str]) -> None:
    with pytest.raises(CredentialsRefused):
        certificate_user(make(subject("carol", (), uids), AUTHORITY).certificate)


def test_a_certificate_without_key_usages_is_accepted_for_clients() -> None:
    for usages in (None, [SERVER, CLIENT]):
        carol = make(subject("carol"), AUTHORITY, usages=usages)
        assert vouched(carol) == carol.certificate


def test_a_server_certificate_is_refused_for_clients() -> None:
    assert "incompatible key usage" in refused(make(subject("carol"), AUTHORITY, usages=[SERVER]))


@pytest.mark.parametrize("days", [-3, 3])
def test_an_expired_or_future_certificate_is_refused(days: int) -> None:
    begins, ends = NOW + timedelta(days=days - 1), NOW + timedelta(days=days + 1)
    assert "expired or is not yet valid" in refused(make(subject("carol"), AUTHORITY, begins=begins, ends=ends))


def test_a_certificate_of_another_authority_of_the_same_name_is_refused() -> None:
    assert "unknown authority" in refused(make(subject("carol"), authority("another")))
    assert "unknown authority" in refused(make(subject("carol"), authority()))


def test_a_self_signed_certificate_is_refused() -> None:
    assert "unknown authority" in refused(make(subject("carol")))


def test_a_certificate_signed_by_a_client_is_refused() -> None:
    carol = make(subject("carol"), AUTHORITY)
    assert "unknown authority" in refused(make(subject("root", ["system:masters"]), carol), carol)


def test_an_expired_authority_is_refused() -> None:
    ends = NOW - timedelta(hours=1)
    expired = make(subject("old"), is_authority=True, ends=ends)
    assert "unknown authority" in refused(make(subject("carol"), expired), authorities=(expired,))


def test_intermediate_certificates_can_be_presented() -> None:
    link = authority("a link", AUTHORITY)
    carol = make(subject("carol"), link)
    assert vouched(carol, link) == carol.certificate
    assert "unknown authority" in refused(carol)


def test_a_chain_longer_than_the_authority_allows_is_refused() -> None:
    root = authority("short", path_length=0)
    link = authority("a link", root)
    assert "unknown authority" in refused(make(subject("carol"), link), link, authorities=(root,))
    carol = make(subject("carol"), root)
    assert vouched(carol, authorities=(root,)) == carol.certificate


def test_an_authority_for_servers_is_refused_for_clients() -> None:
    server = make(subject("s"), is_authority=True, more=[(x509.ExtendedKeyUsage([SERVER]), False)])
    assert "unknown authority" in refused(make(subject("carol"), server), authorities=(server,))


def test_name_constraints_are_refused() -> None:
    only = x509.NameConstraints([x509.DNSName("example.com")], None)
    restricted = make(subject("r"), is_authority=True, more=[(only, True)])
    assert "unknown authority" in refused(make(subject("carol"), restricted), authorities=(restricted,))


def test_an_unknown_critical_extension_is_refused() -> None:
    unknown = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")
    assert "unhandled critical extension" in refused(make(subject("carol"), AUTHORITY, more=[(unknown, True)]))
    carol = make(subject("carol"), AUTHORITY, more=[(unknown, False)])
    assert vouched(carol) == carol.certificate


def test_an_invalid_certificate_is_refused() -> None:
    with pytest.raises(CredentialsRefused):
        vouch([b"\x30\x03abc"], [AUTHORITY.certificate], SECONDS)


def test_cross_signed_certificates_cost_one_check_each() -> None:
    first = authority("ring")
    ring = [first, *(make(subject("ring"), first, is_authority=True, key=first.key) for _ in range(12))]
    leaf = make(subject("mallory"), first)
    search = Search(leaf.certificate, [each.certificate for each in ring], [AUTHORITY.certificate])
    assert list(search.chains([leaf.certificate])) == []
    assert MOST_CHECKS - search.checks_left == len(ring)


def test_a_search_ends_after_as_many_checks_as_in_go() -> None:
    """Certificates with the same subject and different keys are all possible issuers of one another."""
    keys = [authority("ring") for _ in range(MOST_PRESENTED - 1)]
    leaf = make(subject("mallory"), keys[-1])
    links = [make(subject("ring"), each, is_authority=True, key=other.key) for each in keys[:5] for other in keys[-5:]]
    said = refused(leaf, *links)
    assert "x509: signature check attempts limit reached while verifying certificate chain" in said


def test_too_many_certificates_are_refused_without_parsing() -> None:
    assert "at most 32 may be" in refused(*[make(subject("carol"))] * (MOST_PRESENTED + 1))


def test_the_list_restricts_names_only_if_it_is_set() -> None:
    proxy = make(subject("front-proxy-client"), AUTHORITY).certificate
    check_name(proxy, ["other", "front-proxy-client"])
    check_name(proxy, [])
    with pytest.raises(CredentialsRefused, match="Unauthorized") as refusal:
        check_name(proxy, ["other"])
    assert refusal.value.explanation == "x509: subject with cn=front-proxy-client is not in the allowed list"
