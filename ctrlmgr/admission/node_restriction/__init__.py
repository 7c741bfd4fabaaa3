"""What nodes may write: decisions of the NodeRestriction plugin."""
