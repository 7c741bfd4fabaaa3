"""Commands about recordings: made, imported, replayed, played."""
