"""The engine: one set of verbs for objects of all kinds, on top of the event log.

A write passes through these modules, in this order: `schema` decodes the body. `patch` or `managedfields` applies a
patch to the stored object. The kind's `strategy` defaults, prepares and validates the object. `engine` converts the
object to proposals and appends these. The `cacher`, which holds the log's current state, answers reads and watches.
"""
