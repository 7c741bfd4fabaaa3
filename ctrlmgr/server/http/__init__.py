"""HTTP/1.1, on asyncio, uvloop and httptools: from bytes to an `Exchange`, and from its answer to bytes.

In the order a request travels: `server` accepts connections, `connection` reads them and bounds what a client may do
(`bounds`), `parser` makes requests of bytes, and an `Exchange` is what the application gets: a request, and the way to
answer it, whole or as a `Stream`. `framing` says how that looks on the wire.

The package knows nothing of Kubernetes. `request` and `responses` are where the API begins.
"""
