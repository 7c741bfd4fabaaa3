"""Commands for recordings: `record`, `import`, `replay` and `play`."""
