"""What the server says of itself and its kinds: discovery, OpenAPI, versions, table columns."""
