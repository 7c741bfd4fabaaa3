"""HTTP/2 (RFC 9113): many requests at a time on one connection, from bytes to an `Exchange` for each.

`frames` cuts bytes into frames, `blocks` reads header blocks and writes them, `channel` is one stream, and `connection`
keeps what the streams of a connection share.
"""
