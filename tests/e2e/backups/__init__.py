"""Tests of backups that other programs make: Litestream for SQLite, and PostgreSQL's own tools."""
