"""Sends bodies of any size: small bodies whole, long lists in chunks, compressed if the client accepts gzip.

Guarantees:
- A long list occupies the event loop for only a few pieces at a time. For a slow client, only one piece of the list is
  in memory, and the client is disconnected after `PATIENCE` seconds.
- Slow conversions (compression, YAML, indentation) run on a worker thread.
- The server compresses bodies of more than 128 KiB with gzip if the client accepts gzip (apiserver
  `pkg/endpoints/handlers/responsewriters/writers.go`).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain, islice

from ctrlmgr.engine.operations import Listing
from ctrlmgr.http.framing import Header
from ctrlmgr.http.response_stream import ONE_WRITE
from ctrlmgr.server.presenting.negotiation import Representation
from ctrlmgr.server.presenting.presentation import Presentation
from ctrlmgr.server.presenting.responses import JSON_TYPE, NO_CACHE, Response, represented
from ctrlmgr.server.request import PATIENCE, Request
from ctrlmgr.server.workers import Workers
from ctrlmgr.tracing.latencies import SERIALIZATION

_WORTH_PACKING = 128 * 1024
_LEVEL = 1
"""The compression level, which is gzip's fastest level as in Kubernetes, because the network within a cluster is fast.
"""

_GZIP_FORMAT = 16 + zlib.MAX_WBITS
_QUICK = 32 * 1024
"""Maximum size in bytes of a body that is converted on the event loop, which is faster than using a thread."""

_PACKED: Sequence[Header] = ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"))


class Sender:
    """Sends bodies. Used on the event loop's thread only."""

    def __init__(self, workers: Workers) -> None:
        """Create a sender that runs slow conversions on the threads `workers`."""
        self._workers = workers

    async def whole(
        self, request: Request, code: int, body: bytes, how: Representation, more: Sequence[Header] = ()
    ) -> None:
        """Send an encoded JSON body in the requested representation."""
        if request.audit is not None:
            request.audit.answered(code, body)
        response = Response(code, body)
        if how.yaml or how.pretty:
            make = partial(represented, code, body, how)
            with request.stage(SERIALIZATION):
                response = make() if len(body) < _QUICK else await self._workers.run(make)
        if len(response.body) > _WORTH_PACKING and request.accepts_gzip:
            with request.stage(SERIALIZATION):
                packed = await self._workers.run(partial(gzip.compress, response.body, _LEVEL, mtime=0))
            response = Response(code, packed, (*response.headers, *_PACKED))
        await request.respond(response, more)

    async def listing(
        self, request: Request, presentation: Presentation, listing: Listing, how: Representation
    ) -> None:
        """Send a list in pieces."""
        pieces = _gathered(presentation.list(listing))
        if request.audit is not None and request.audit.wants_response:
            pieces = [b"".join(pieces)]
            request.audit.answered(200, pieces[0])
        size = sum(map(len, pieces)) if isinstance(pieces, Sequence) else None
        if how.yaml or how.pretty or not request.accepts_chunks or (size is not None and size <= ONE_WRITE):
            await self.whole(request, 200, b"".join(pieces), how)
        elif request.accepts_gzip and (size is None or size > _WORTH_PACKING):
            await self._packed(request, pieces)
        else:
            await self._streamed(request, pieces, [(b"content-length", b"%d" % size)] if size is not None else ())

    async def _streamed(self, request: Request, pieces: Iterable[bytes], length: Sequence[Header]) -> None:
        """Send the pieces unchanged, in HTTP chunks if the total `length` is unknown."""
        stream = await request.begin_stream(200, (JSON_TYPE, NO_CACHE, *length))
        await stream.send_all(pieces, PATIENCE)
        stream.end()

    async def _packed(self, request: Request, pieces: Iterable[bytes]) -> None:
        packer = zlib.compressobj(_LEVEL, wbits=_GZIP_FORMAT)
        stream = await request.begin_stream(200, (JSON_TYPE, NO_CACHE, *_PACKED))
        for piece in pieces:
            packed = await self._workers.run(partial(packer.compress, piece))
            if packed:
                stream.send(packed)
                await stream.drain(PATIENCE)
        stream.send(packer.flush())
        stream.end()


def _gathered(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """Return the pieces as a sequence, if all pieces exist already or there is only one piece."""
    if isinstance(pieces, Sequence):
        return pieces
    making = iter(pieces)
    first = list(islice(making, 2))
    return first if len(first) < 2 else chain(first, making)
