"""The public framework: kinds as classes, controllers as functions, and what runs them.

What its users import stands in `ctrlmgr` itself (`ctrlmgr.__all__`). In the order in which one meets it: `model` and
`declaration` are kinds as classes, `schema` and `definition` what follows from them, `app` controllers and admission as
functions, `context` what a controller's function is given, `reconciler` what calls it, `assembly` what puts it among
our own, `admission` the same for admission. `loading` finds apps by name, `install` puts their definitions in place,
`client` is for programs beside a cluster, and `remote` runs an app as a process of its own.
"""
