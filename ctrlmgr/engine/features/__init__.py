"""Feature gates: the states of the gates, the fields that they guard, and the removal of disabled fields."""
