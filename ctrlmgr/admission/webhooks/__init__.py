"""Webhooks: other processes that change or refuse writes.

In the order a write meets them: `hooks` reads the configurations, `matching` says which hooks are to be asked and about
which version of the object, `review` writes the question and reads the answer, `endpoint` says where to send it, and
`calling` makes a refusal of what goes wrong. The plugins are `plugins.mutating_webhooks` and
`plugins.validating_webhooks`.
"""
