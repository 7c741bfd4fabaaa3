"""Events (the API objects): recording, merging of repeated Events, and their expiry."""
