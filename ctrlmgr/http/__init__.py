"""An HTTP/1.1 and HTTP/2 server on asyncio and uvloop: parses requests to `Exchange`s, and encodes their answers.

A request is processed in this order. `http_server` accepts connections. `alpn` selects the protocol that the TLS
handshake negotiated. `http1_connection` (HTTP/1.1, parsed by `parser`) or `http2` reads requests and enforces limits
(`bounds`). The application receives an `Exchange`: a request, and methods to answer it, whole or as a `Stream`.
`http1_responses` and `framing` encode answers for HTTP/1.1. `base_connection` is the common part of both kinds of
connections.

The package does not depend on Kubernetes' API, which `ctrlmgr.server` implements.
"""
