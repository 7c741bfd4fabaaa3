"""Opens a log's database for queries. If an EncryptionConfiguration is given, the results are decrypted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctrlmgr.inspection.database import Database, open_database

if TYPE_CHECKING:  # the cryptography package is imported only if objects are encrypted
    from ctrlmgr.encryption.key_providers import KeyProviders


def open_decrypted(url: str, providers: KeyProviders | None, *, patience: float | None = None) -> Database:
    """Open the log's database at `url` as `open_database` does, and decrypt the results with `providers`.

    If `providers` is None, encrypted values stay encrypted.
    """
    database = open_database(url, patience=patience)
    if providers is None:
        return database
    from ctrlmgr.inspection.decrypting_database import DecryptingDatabase

    return DecryptingDatabase(database, providers)
