"""Implements HTTP/2 (RFC 9113): parses concurrent requests on one connection, with an `Exchange` for each request.

`frames` parses and encodes frames, `header_blocks` reads and writes header blocks, `http2_stream` is one stream, and
`http2_connection` holds the shared state of all streams.
"""
