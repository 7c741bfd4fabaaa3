"""Records Events (the API objects), merges repeated Events, and deletes expired Events."""
