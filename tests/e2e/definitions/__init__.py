"""Kubernetes' conformance tests of CustomResourceDefinitions; each function tests one of them.

`docs/custom-resources.md` contains a table of the titles of the conformance tests; `test_titles.py` checks that the
table names the same tests as this folder.
"""
