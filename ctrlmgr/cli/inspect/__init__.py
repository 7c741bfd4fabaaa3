"""Commands that show the content of the log and the causes of changes."""
