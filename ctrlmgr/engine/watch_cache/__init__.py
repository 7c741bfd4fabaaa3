"""The API server's watch cache (apiserver `pkg/storage/cacher`): lists and watches are served from it.

`cacher` holds one store of objects per kind (`resource_store`), `log_history` reads older changes from the event log,
and `watch` selects the changes that a watch sends.
"""
