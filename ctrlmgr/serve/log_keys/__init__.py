"""The keys with which a serving process encrypts its log: checks at the start, and reloads."""
