"""The kind Service: its defaults, its validation, and the allocation of its addresses and ports."""
