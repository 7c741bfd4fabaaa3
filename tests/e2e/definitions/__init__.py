"""What Kubernetes' conformance tests say of CustomResourceDefinitions, one test here for each there.

`docs/custom-resources.md` has the table of their titles; `test_titles.py` holds the two to each other.
"""
