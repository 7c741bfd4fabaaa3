"""The public framework, with which users declare kinds as classes and controllers as functions.

Users import from `ctrlmgr` itself (`ctrlmgr.__all__`). `typed_kinds` and `class_declaration` implement kinds as
classes; `class_schema` and `derived_definition` derive the CustomResourceDefinitions of these kinds. `app` declares
controllers and admission as functions. `reconcile_context` is the argument of a controller's function, `reconciler`
calls the function, and `controller_building` builds the controller. `app_admission` declares, builds and calls
admission functions. `app_loading` finds apps by name, and `install` installs the CustomResourceDefinitions of their
kinds. `remote` runs an app in its own process. `typed_client` is a client for scripts and tests.
"""
