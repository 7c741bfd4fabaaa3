"""What a server that plays a recording answers: its controls, and writes that it only pretends to make."""
