"""Authentication at the server's door, and the reviews and tokens that go with it."""
