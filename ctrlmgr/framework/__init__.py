"""The public framework: kinds as classes, controllers as functions, and what runs them.

What its users import stands in `ctrlmgr` itself (`ctrlmgr.__all__`). In the order in which one meets it: `model` and
`declaration` are kinds as classes, `schema` and `definition` what follows from them, `app` and `watch` controllers as
functions, `context` what such a function is given, `reconciler` what calls it, `assembly` what puts it among our own.
"""
