"""Feature gates: their states, the fields they guard, and dropping the fields of disabled gates."""
