"""HTTP/1.1 over TLS: connections, requests, responses, streams."""
