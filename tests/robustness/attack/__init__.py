"""Tests of hostile inputs: their cost is limited, and none causes an internal error or reveals hidden data."""
