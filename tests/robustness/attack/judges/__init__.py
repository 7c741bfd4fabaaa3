"""The limits for a server under attack: how long other clients wait, and how much an input costs."""
