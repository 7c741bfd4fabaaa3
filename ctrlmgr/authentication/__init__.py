"""Who sends a request: users, and what names them. Nothing here serves, waits or reads a clock."""
