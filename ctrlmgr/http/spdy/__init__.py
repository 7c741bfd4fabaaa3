"""SPDY/3.1, which kubectl and kubelets use to carry several streams on one connection.

Only the part that moby/spdystream implements: streams with headers, data and resets, pings and GOAWAY, and no flow
control besides that of TCP. `spdy_frames` encodes and decodes, `spdy_connection` has the streams.
"""
