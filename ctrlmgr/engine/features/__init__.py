"""Feature gates: which are on, which fields they guard, and how a field is dropped whose gate is off."""
