"""HTTP/2 (RFC 9113): concurrent requests on one connection, from bytes to an `Exchange` for each.

`frames` parses and encodes frames, `blocks` reads and writes header blocks, `channel` is one stream, and
`http2_connection` holds the shared state of all streams.
"""
