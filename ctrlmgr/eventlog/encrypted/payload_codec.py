"""Encrypts and decrypts the payloads of events; no other module encrypts or decrypts payloads.

A stored payload of an encrypted object is JSON with the object's kind, apiVersion, name, namespace and uid, and the
whole object in encrypted form:

    {"kind":"Secret","apiVersion":"v1","metadata":{…},"encrypted":"k8s:enc:log:v1:DATAKEY:BASE64"}

Guarantees:
- The bytes after the data key's id are 32 random bytes, a nonce of 12 bytes, and the object encrypted with AES-256-GCM.
  The AES key is derived from the data key and the random bytes (HKDF-Expand, SHA-256), so one data key can encrypt any
  number of payloads.
- A payload is bound to its resource, namespace and name: a payload that was copied to another object is refused.
- The hash chain hashes stored payloads. Therefore the hash chain can be verified without keys, and a rotation does not
  change the hash chain.
- A data key is used only after it is durable in the table of data keys.

Source of the derivation: apiserver `pkg/storage/value/encrypt/aes/aes_extended_nonce.go`.
"""

from __future__ import annotations

import secrets
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import Clock
from ctrlmgr.encryption.key_ciphers import Identity, KeyCipher, KeyRefused, RandomBytes
from ctrlmgr.encryption.key_providers import KeyProviders
from ctrlmgr.encryption.kms.kms_cipher import KmsCipher
from ctrlmgr.errors import BadRequest, LogCorrupt, LogUnavailable
from ctrlmgr.eventlog.encrypted.data_keys import TEXTS, DataKey, DataKeys
from ctrlmgr.eventlog.encrypted.encryption_metrics import (
    CACHE_MISSES,
    DATA_KEYS,
    FROM_STORAGE,
    GENERATION_FAILURES,
    GENERATION_SECONDS,
    TO_STORAGE,
    KeyUse,
)
from ctrlmgr.eventlog.event import Failure
from ctrlmgr.eventlog.hash_chain import Place
from ctrlmgr.eventlog.purged_payload import PayloadHead, payload_head

_PREFIX: Final = "k8s:enc:log:v1:"
_MARK: Final = b',"encrypted":"k8s:enc:log:v1:'
_TEXT_PLACE: Final = (TEXTS, "", "")
_SEED: Final = 32
_NONCE: Final = 12


class _Envelope(PayloadHead):
    """The stored payload of an encrypted object."""

    encrypted: str = ""


_decode = msgspec.json.Decoder(_Envelope).decode
_encode = msgspec.json.Encoder().encode


class _Current(NamedTuple):
    """The data key that encrypts new payloads of a resource."""

    id: str
    seed: bytes
    cipher: KeyCipher


class PayloadCodec:
    """Encrypts and decrypts the payloads of one log; an instance is thread-safe."""

    def __init__(
        self, providers: KeyProviders, keys: DataKeys, *, clock: Clock, random: RandomBytes = secrets.token_bytes
    ) -> None:
        """Create a codec for the data keys in `keys`; the ciphers of `providers` encrypt these data keys."""
        self._providers = providers
        self._keys = keys
        self._clock = clock
        self._random = random
        self._lock = threading.Lock()  # held while a data key is added
        self._current: dict[str, _Current | None] = {}  # by resource; None if the resource is not encrypted
        self._seeds: dict[str, bytes] = {}  # by the id of the data key
        self._uses: dict[tuple[str, str], KeyUse] = {}  # by the id of the data key and the direction
        self._held: dict[str, str] = {}  # the providers of data keys that a KMS encrypted, by the id of the data key

    def encrypts(self, resource: Resource) -> bool:
        """Return whether new objects of a resource are encrypted."""
        return self._providers.encrypts(resource)

    def stored(self, place: Place, body: bytes) -> bytes:
        """Return the payload to store for an object; an object of a resource without encryption is returned unchanged.

        Raises `BadRequest` if the object has the form of an encrypted payload, and `LogUnavailable` if no data key can
        be added. Raises `LogError` if a KMS has not been healthy for too long.
        """
        if _MARK in body and _opened(body) is not None:
            raise BadRequest("an object must not have a field `encrypted` that begins with k8s:enc:log:v1:")
        current = self._current_of(place[0])
        if current is None:
            return body
        current.cipher.require_usable()
        head = payload_head(body)
        began = self._clock.monotonic()
        sealed = self._sealed(current, place, body)
        self._count(current.id, TO_STORAGE, began)
        return _encode(_Envelope(head.kind, head.api_version, head.metadata, sealed))

    def plain(self, place: Place, payload: bytes) -> bytes:
        """Return the decrypted object of a stored payload.

        The method returns an unencrypted payload unchanged, even if the resource's data key was deleted. Raises
        `LogCorrupt` if the payload was changed, and `LogUnavailable` if the key that encrypts the payload's data key is
        missing.
        """
        if _MARK not in payload:
            return payload
        envelope = _opened(payload)
        if envelope is None:
            return payload
        began = self._clock.monotonic()
        try:
            found = self._unsealed(place, envelope.encrypted, payload)
        except LogCorrupt:
            self._count(_key_of(envelope.encrypted), FROM_STORAGE, None)
            raise
        self._count(_key_of(envelope.encrypted), FROM_STORAGE, began)
        return found

    def _count(self, id: str, direction: str, began: float | None) -> None:
        """Count the use of a data key since `began`; None if the data key could not decrypt a payload."""
        use = self._uses.get((id, direction)) or self._new_use(id, direction)
        if use is None:
            return
        if began is None:
            use.failed()
        else:
            use.succeeded(self._clock.monotonic() - began, self._clock.now())

    def _new_use(self, id: str, direction: str) -> KeyUse | None:
        """Return the counters of a data key; None if the log has no such data key."""
        row = next((each for each in self._keys.all() if each.id == id), None)
        cipher = None if row is None else next(self._matching(row), None)
        if row is None or cipher is None:
            return None
        key_id = cipher.key_id(_encrypted_of(row, cipher))
        use = self._uses[id, direction] = KeyUse(row.resource, direction, cipher.prefix, cipher.provider, key_id)
        return use

    def hidden(self, text: str) -> str:
        """Return the stored form of an error text: encrypted if the log encrypts the objects of any resource."""
        current = self._current_of(TEXTS) if text else None
        return text if current is None else self._sealed(current, _TEXT_PLACE, text.encode(errors="replace"))

    def shown(self, text: str) -> str:
        """Return the decrypted form of a stored error text."""
        return self._unsealed(_TEXT_PLACE, text, text.encode()).decode() if text.startswith(_PREFIX) else text

    def readable(self, text: str) -> str:
        """Return a text of the database in plain form: a payload, an error text, or a text that is not encrypted.

        The method identifies the object by the name in the payload and by the data key, so the method does not refuse a
        payload that was copied to another object.
        """
        if text.startswith(_PREFIX):
            return self.shown(text)
        payload = text.encode()
        envelope = _opened(payload) if _MARK in payload else None
        if envelope is None:
            return text
        named = _key_of(envelope.encrypted)
        resource = next((each.resource for each in self._keys.all() if each.id == named), "")
        place = (resource, envelope.metadata.namespace, envelope.metadata.name)
        return self._unsealed(place, envelope.encrypted, payload).decode()

    def shown_failure(self, failure: Failure) -> Failure:
        """Return a failure with its texts decrypted."""
        texts = {"error": self.shown(failure.error), "traceback": self.shown(failure.traceback)}
        return msgspec.structs.replace(failure, **texts)

    def _sealed(self, current: _Current, place: Place, body: bytes) -> str:
        info, nonce = self._random(_SEED), self._random(_NONCE)
        encrypted = AESGCM(_derived(current.seed, info)).encrypt(nonce, body, _context(place))
        return f"{_PREFIX}{current.id}:{b64encode(info + nonce + encrypted).decode()}"

    def _unsealed(self, place: Place, sealed: str, otherwise: bytes) -> bytes:
        named, _, text = sealed.removeprefix(_PREFIX).partition(":")
        seed = self._seed(named)
        if seed is None:
            return otherwise
        try:
            data = b64decode(text, validate=True)
            info, nonce, encrypted = data[:_SEED], data[_SEED : _SEED + _NONCE], data[_SEED + _NONCE :]
            return AESGCM(_derived(seed, info)).decrypt(nonce, encrypted, _context(place))
        except (InvalidTag, ValueError) as error:
            called = "/".join(filter(None, place))
            raise LogCorrupt(f"the payload of {called} is damaged: data key {named} cannot decrypt it") from error

    def _seed(self, id: str) -> bytes | None:
        """Return a data key; None if the log has no data key with this id."""
        seed = self._seeds.get(id)
        if seed is None:
            row = next((each for each in self._keys.all() if each.id == id), None)
            if row is None:
                return None
            seed = self._seeds[id] = self._unwrapped(row)
        return seed

    def _unwrapped(self, key: DataKey) -> bytes:
        for cipher in self._matching(key):
            try:
                seed = cipher.decrypt(_encrypted_of(key, cipher), _key_context(key))
            except (KeyRefused, ValueError) as error:
                raise LogUnavailable(
                    f"data key {key.id} of {key.resource} cannot be decrypted with {cipher.prefix}: the key in the "
                    "EncryptionConfiguration is not the one that encrypted it"
                ) from error
            if cipher.provider:
                CACHE_MISSES.inc()
                self._hold(key.id, cipher)
            return seed
        raise LogUnavailable(
            f"data key {key.id} of {key.resource} was encrypted with {_prefix_of(key)}, which the "
            "EncryptionConfiguration does not have for this resource"
        )

    def _matching(self, key: DataKey) -> Iterator[KeyCipher]:
        """Yield the ciphers that may have encrypted a data key."""
        return (each for each in self._ciphers(key.resource) if key.wrapped.startswith(each.prefix))

    def _hold(self, id: str, cipher: KeyCipher) -> None:
        """Count a data key that this process can use without its KMS."""
        if cipher.provider:
            self._held[id] = cipher.provider
            DATA_KEYS.labels(cipher.provider).set(sum(each == cipher.provider for each in self._held.values()))

    def _ciphers(self, resource: str) -> Sequence[KeyCipher]:
        return self._providers.of_texts() if resource == TEXTS else self._providers.of(Resource.parse(resource))

    def _current_of(self, resource: str) -> _Current | None:
        try:
            return self._current[resource]
        except KeyError:
            with self._lock:
                if resource not in self._current:
                    self._current[resource] = self._chosen(resource)
                return self._current[resource]

    def _chosen(self, resource: str) -> _Current | None:
        """Return the newest data key that the first cipher of a resource encrypted; if none exists, add a data key."""
        ciphers = self._ciphers(resource)
        if not ciphers or isinstance(ciphers[0], Identity):
            return None
        of_resource = (each for each in self._keys.all() if each.resource == resource)
        if mine := [each for each in of_resource if _is_current(each, ciphers[0])]:
            seed = self._seeds.get(mine[-1].id) or self._unwrapped(mine[-1])
            return _Current(mine[-1].id, self._seeds.setdefault(mine[-1].id, seed), ciphers[0])
        key, seed = self._added(resource, ciphers[0])
        self._seeds[key.id] = seed
        self._hold(key.id, ciphers[0])
        return _Current(key.id, seed, ciphers[0])

    def _added(self, resource: str, cipher: KeyCipher) -> tuple[DataKey, bytes]:
        """Add a data key to the log, and return the data key in its stored and its plain form."""
        began, now, seed = self._clock.monotonic(), self._clock.now(), self._random(_SEED)
        key = DataKey(self._random(8).hex(), resource, "", now, now)
        try:
            self._keys.add(key._replace(wrapped=_wrapped(cipher, key, seed)))
        except BaseException:
            GENERATION_FAILURES.inc()
            raise
        GENERATION_SECONDS.observe(self._clock.monotonic() - began)
        return key, seed

    @property
    def content_hash(self) -> str:
        """The hash of the configuration file in use."""
        return self._providers.content_hash

    def use(self, providers: KeyProviders) -> None:
        """Replace the configuration; if the new one lacks a needed key, keep the old one and raise `LogUnavailable`."""
        changed = PayloadCodec(providers, self._keys, clock=self._clock, random=self._random)
        try:
            changed.prepare()
        except BaseException:
            providers.close()
            raise
        with self._lock:
            previous, self._providers = self._providers, providers
            self._current = changed._current
            self._seeds |= changed._seeds
            self._uses = {}
        previous.close()

    @property
    def services(self) -> Sequence[KmsCipher]:
        """The ciphers of the configuration in use that call a KMS."""
        return self._providers.services

    def renew(self) -> None:
        """Add a data key for each resource whose cipher has changed its key; raises `LogUnavailable` if that fails."""
        with self._lock:
            self._current = {resource: self._chosen(resource) for resource in self._current}
            self._uses = {}  # a rotation may have encrypted the data keys with another key

    def close(self) -> None:
        """Close the connections to KMS plugins."""
        self._providers.close()

    def check(self) -> None:
        """Decrypt each data key of the log; raises `LogUnavailable` for the first data key that cannot be decrypted."""
        for key in self._keys.all():
            self._seeds[key.id] = self._unwrapped(key)

    def prepare(self) -> None:
        """Check each KMS and the data keys, and add the data keys of the resources that the configuration names."""
        for service in self.services:
            service.check(self.renew)
        self.check()
        for resource in self._providers.named():
            self._current_of(str(resource))
        self._current_of(TEXTS)

    def rotate(self) -> Iterator[tuple[DataKey, str]]:
        """Encrypt each data key with the first cipher of its resource; yield each old data key and its new prefix.

        A rotation may be interrupted and started again at any time. Raises `LogUnavailable`, and changes no data key,
        if one of the data keys cannot be decrypted.
        """
        self.check()
        for key in self._keys.all():
            cipher = self._ciphers(key.resource)[0]
            if not _is_current(key, cipher):
                wrapped = _wrapped(cipher, key, self._seeds[key.id])
                if self._keys.rewrap(key, wrapped, self._clock.now()):
                    yield key, cipher.prefix


def _wrapped(cipher: KeyCipher, key: DataKey, seed: bytes) -> str:
    return cipher.prefix + b64encode(cipher.encrypt(seed, _key_context(key))).decode()


def _is_current(key: DataKey, cipher: KeyCipher) -> bool:
    """Return whether a cipher would encrypt a data key with the key that encrypted it."""
    text = key.wrapped.removeprefix(cipher.prefix)
    return text != key.wrapped and cipher.is_current(b64decode(text))


def _key_context(key: DataKey) -> bytes:
    return f"{key.resource}/{key.id}".encode()


def _prefix_of(key: DataKey) -> str:
    return key.wrapped[: key.wrapped.rfind(":") + 1]


def _encrypted_of(key: DataKey, cipher: KeyCipher) -> bytes:
    return b64decode(key.wrapped[len(cipher.prefix) :])


def _key_of(sealed: str) -> str:
    """Return the id of the data key that encrypted a payload."""
    return sealed.removeprefix(_PREFIX).partition(":")[0]


def _context(place: Place) -> bytes:
    return "\0".join(place).encode()


def _derived(seed: bytes, info: bytes) -> bytes:
    return HKDFExpand(SHA256(), 32, info).derive(seed)


def _opened(payload: bytes) -> _Envelope | None:
    """Return the decoded form of an encrypted payload; None if this module cannot have written the bytes."""
    try:
        envelope = _decode(payload)
    except msgspec.MsgspecError:
        return None
    is_whole = envelope.encrypted.startswith(_PREFIX) and _encode(envelope) == payload
    return envelope if is_whole else None
