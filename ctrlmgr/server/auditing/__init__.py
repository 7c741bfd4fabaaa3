"""The audit log at the server's door: the step that writes down requests, and the webhook that may take them."""
