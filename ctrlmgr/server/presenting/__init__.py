"""Creates and sends answers: content negotiation, encodings, tables, and lists in chunks."""
