"""Kubernetes' conformance tests of CustomResourceDefinitions, one test for each.

`docs/custom-resources.md` has the table of their titles; `test_titles.py` checks that the table and the tests are
consistent.
"""
