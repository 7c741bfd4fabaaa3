"""Creates certificates for tests."""

from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def certificate(name: str, *, is_authority: bool | None = True) -> str:
    """Return a self-signed certificate (PEM); without `is_authority`, it has no basic constraints."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    made = made.serial_number(7).not_valid_before(BEGIN).not_valid_after(BEGIN + timedelta(days=3650))
    if is_authority is not None:
        made = made.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
