"""Runs controllers in their own process against any Kubernetes API server, including ours.

The controllers are the same as in `serve`, but built from other parts. `api` is the server over HTTP, `stream` lists
and watches one resource, `informers` are the caches that the streams fill, controllers write and read through `client`
and `log`, and `process` combines all.
"""
