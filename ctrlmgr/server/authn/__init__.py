"""Authentication of requests, access reviews, and tokens of service accounts."""
