"""HTTP/1.1 and HTTP/2, on asyncio and uvloop: from bytes to an `Exchange`, and from its answer to bytes.

In the order a request travels: `server` accepts connections, a `newcomer` speaks what its handshake has negotiated,
`connection` (HTTP/1.1, with what `parser` makes requests of) or `http2` reads requests and bounds what a client may do
(`bounds`), and an `Exchange` is what the application gets: a request, and the way to answer it, whole or as a `Stream`.
`line_answers` and `framing` say how that looks in HTTP/1.1. `transported` is what both kinds of connections have in
common.

The package knows nothing of Kubernetes. `request` and `responses` are where the API begins.
"""
