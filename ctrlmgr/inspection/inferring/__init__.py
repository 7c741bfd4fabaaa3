"""Why something happened, where nothing recorded it: causes inferred from what a recording of a real cluster holds.

`inference.infer` puts the rules together; each module beside it has those for some kinds. A rule is a pure function of
a change and of what was before it (`past.Past`).
"""
