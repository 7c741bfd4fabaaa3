"""Recordings: what a cluster's watches said, kept in a file, and replayed through our own log and controllers.

In the order in which an event travels: `format` reads and writes the files, `attribution` tells who wrote a
change, `expectation` splits a recording into inputs and what our controllers must come to, `replay` drives log,
caches and controllers on a virtual `clock`, `divergence` says where the two differ.
"""
