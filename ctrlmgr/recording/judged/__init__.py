"""Decisions of recorded controllers that ours are asked for again, where a recording shows what they were made of."""
