"""`ctrlmgr encryption`: shows and rotates the keys that encrypt the log."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ctrlmgr.cli.options import DATABASE, ENCRYPTED_DATABASE, opened_for_reading, opened_log, takes_settings
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.eventlog.encrypted.payload_codec import PayloadCodec


@click.group(short_help="Show and rotate the keys that encrypt the log.")
def encryption() -> None:
    """Show and rotate the keys that encrypt the log.

    Each encrypted object is encrypted by a data key. The log stores the data keys; the keys in the file of
    --encryption-provider-config encrypt them.

    \b
    ctrlmgr encryption status
    ctrlmgr encryption rotate --encryption-provider-config keys.yaml
    """


@encryption.command(short_help="List the data keys of the log.")
@takes_settings(*DATABASE)
def status(loaded: Loaded) -> None:
    """List the data keys of the log, each with the provider and key that encrypt it; no key is needed.

    \b
    ctrlmgr encryption status
    """
    from ctrlmgr.clock import format_time

    with opened_for_reading(loaded) as log:
        keys = log.data_keys.all()
    for key in keys:
        prefix = _key_name(key.wrapped)
        created, wrapped = format_time(key.created_at), format_time(key.wrapped_at)
        click.echo(f"{key.id}  {key.resource}  {prefix}  created {created}  encrypted {wrapped}")
    if not keys:
        click.echo("the log contains no encrypted objects")


@encryption.command(short_help="Encrypt the data keys with the first key of the configuration.")
@takes_settings(*ENCRYPTED_DATABASE)
def rotate(loaded: Loaded) -> None:
    """Encrypt all data keys of the log with the first provider and key of the configuration.

    After a rotation, the other keys can be removed from the configuration. Payloads and the hash chain do not change.
    Servers may run at the same time; they must have the new key already. A rotation that was interrupted can be started
    again; no data key is lost.

    \b
    ctrlmgr encryption rotate --encryption-provider-config keys.yaml
    """
    with _codec(loaded) as codec:
        rotated = 0
        for key, prefix in codec.rotate():
            rotated += 1
            click.echo(f"data key {key.id} of {key.resource} is now encrypted with {prefix}")
        click.echo(f"rotated {rotated:,} data keys")


def _key_name(wrapped: str) -> str:
    """Return the prefix of the cipher that encrypted a data key, with the key id of a KMS."""
    from ctrlmgr.encryption.kms.kms_messages import PREFIX, Encrypted

    prefix, colon, text = wrapped.rpartition(":")
    key_id = f" {Encrypted.decode_stored(b64decode(text)).key_id}" if wrapped.startswith(PREFIX) else ""
    return prefix + colon + key_id


@contextmanager
def _codec(loaded: Loaded) -> Iterator[PayloadCodec]:
    if not loaded.settings.database.encryption_provider_config:
        raise SettingsError("give the file with the new and the old keys with --encryption-provider-config")
    with opened_log(loaded) as log:
        assert log.codec is not None
        yield log.codec
