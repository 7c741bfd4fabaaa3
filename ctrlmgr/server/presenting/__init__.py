"""Creates and sends responses: content negotiation, encodings, tables, and lists in chunks."""
