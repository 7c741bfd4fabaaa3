"""What an expression may cost at most, from its text and the largest values that its variables can have."""
