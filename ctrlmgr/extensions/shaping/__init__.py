"""What decoding does to a value by a structural schema: pruning, nulls, defaults, embedded metadata."""
