"""Runs controllers in a separate process, against any Kubernetes API server, including that of ctrlmgr.

The controllers are the same as in `ctrlmgr serve`, but are built with other dependencies. `remote_api` sends requests
to the server over HTTP, `reflector` lists and watches one resource, and `informers` keeps the caches that the
reflectors fill. Controllers write and read through `http_client` and `api_server_log`. `controller_process` combines
these modules.
"""
