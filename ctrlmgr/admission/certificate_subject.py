"""Reads the subject of a certificate request, for admission plugins."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Sequence
from typing import NamedTuple

from cryptography import x509
from cryptography.x509.oid import NameOID

from ctrlmgr.engine.validation.certificate_requests import blocks


class Subject(NamedTuple):
    """The parts of a certificate's subject that identify a user and its groups."""

    common_name: str = ""
    organizations: Sequence[str] = ()


def subject_of(request: str) -> Subject | None:
    """Return the subject of a certificate request (base64 of PEM); None if the request is malformed."""
    try:
        found = next(blocks(b64decode(request)), None)
        if found is None:
            return None
        name = x509.load_der_x509_csr(found.der).subject
    except (NoBase64, ValueError):
        return None
    common = [str(each.value) for each in name.get_attributes_for_oid(NameOID.COMMON_NAME)]
    organizations = [str(each.value) for each in name.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    # If a subject has several common names, Go uses the last common name.
    return Subject(common[-1] if common else "", organizations)
