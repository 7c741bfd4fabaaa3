"""How an answer is shown: content negotiation, encodings, tables, lists in pieces."""
