"""Tests of hostile requests: their cost is limited, and none of them causes an internal error or
reveals hidden data.
"""
