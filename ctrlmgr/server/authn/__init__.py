"""Authenticates requests, answers access reviews, and issues tokens of service accounts."""
