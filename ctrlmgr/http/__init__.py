"""An HTTP/1.1 and HTTP/2 server on asyncio and uvloop, which parses requests to `Exchange`s and encodes the responses.

The following modules process a request, in this order. `http_server` accepts connections. `alpn` selects the protocol
that the TLS handshake negotiated. `http1_connection` (HTTP/1.1, parsed by `parser`) or `http2` reads requests and
enforces limits (`bounds`). The application receives an `Exchange`, which contains the request, and methods to write a
response as a whole or as a `Stream`. `http1_responses` and `framing` encode responses for HTTP/1.1. `base_connection`
is the common part of HTTP/1.1 and HTTP/2 connections.

The package knows nothing of Kubernetes' API, which `ctrlmgr.server` implements.
"""
