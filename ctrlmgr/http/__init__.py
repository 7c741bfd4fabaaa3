"""HTTP/1.1 and HTTP/2 on asyncio and uvloop: converts bytes to an `Exchange`, and its answer to bytes.

A request travels in this order. `http_server` accepts connections. `alpn` selects the protocol that the TLS handshake
negotiated. `http1_connection` (HTTP/1.1, parsed by `parser`) or `http2` reads requests and enforces limits (`bounds`).
The application receives an `Exchange`: a request, and methods to answer it, whole or as a `Stream`. `line_answers` and
`framing` encode answers for HTTP/1.1. `base_connection` is the common part of both kinds of connections.

The package knows nothing of Kubernetes. The API begins in `ctrlmgr.server`.
"""
