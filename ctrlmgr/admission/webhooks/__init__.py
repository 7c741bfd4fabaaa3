"""Admission webhooks: calls to other processes that change or refuse writes.

A write passes through these modules, in this order: `hooks` reads the configurations. `webhook_selection` selects the
webhooks to call, and the version of the object that each webhook sees. `review` encodes the request to a webhook and
decodes the response. `webhook_dispatcher` calls the webhook, and turns failures into errors. The plugins are
`plugins.mutating_webhooks` and `plugins.validating_webhooks`.
"""
