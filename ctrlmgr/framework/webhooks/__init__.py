"""Serves the admission functions of apps as webhooks, for an API server that runs in another process.

`admission_reviews` answers one AdmissionReview, and `webhook_server` serves them over HTTPS with the certificate of
`webhook_certificates`. `webhook_address` decides how the API server reaches this server. `registering` registers the
objects of `webhook_configurations`, and removes them.
"""
