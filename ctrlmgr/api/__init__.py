"""What an API object is: names, metadata, bodies, and pure readers of the core kinds. No I/O here."""
