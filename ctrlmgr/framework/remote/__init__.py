"""Runs controllers in their own process against any Kubernetes API server, including ours.

The controllers are the same as in `serve`, but built from other parts. `remote_api` is the server over HTTP,
`list_and_watch` lists and watches one resource, `informers` are the caches that the streams fill, controllers write and
read through `http_client` and `api_server_log`, and `controller_process` combines all.
"""
