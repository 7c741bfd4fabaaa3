"""Commands for those who write operators."""
