"""Serves the admission functions of apps as webhooks, for an API server that runs in another process.

`admission_reviews` processes one AdmissionReview, and `webhook_server` serves the reviews over HTTPS with the
certificate of `webhook_certificates`. `webhook_address` decides how the API server reaches this server. `registering`
writes the webhook configurations of `webhook_configurations` to the cluster, and removes them when the process stops.
"""
