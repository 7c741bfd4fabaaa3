"""The engine: one set of verbs for objects of all kinds, on top of the event log.

A write passes through these modules, in this order: `schema` decodes the body. For a patch, `patch` or `managedfields`
applies the patch to the stored object. After that, the kind's `strategy` defaults, prepares and validates the object.
Finally, `engine` converts the object to proposals, which the log appends. The `cacher` holds the log's current state,
and answers reads and watches.
"""
