"""Implements SPDY/3.1, with which kubectl and kubelets carry several streams on one connection.

The package implements only the part of SPDY that moby/spdystream implements: streams with headers, data and resets,
pings and GOAWAY, and no flow control except that of TCP. `spdy_frames` encodes and decodes frames, and
`spdy_connection` manages the streams of a connection.
"""
