"""What a server under attack is held to: how long others wait, and what an input costs."""
