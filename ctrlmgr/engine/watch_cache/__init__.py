"""The API server's watch cache (apiserver `pkg/storage/cacher`), from which lists and watches are served.

`cacher` holds one store of objects per kind (`resource_store`), `log_history` reads older changes from the event log,
and `watch` selects the changes that a watch sends.
"""
