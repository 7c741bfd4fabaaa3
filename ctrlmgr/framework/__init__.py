"""The public framework: kinds as classes, controllers as functions, and the code that runs them.

Users import from `ctrlmgr` itself (`ctrlmgr.__all__`). `model` and `declaration` are kinds as classes; `schema` and
`definition` derive their definitions. `app` declares controllers and admission as functions, `context` is the argument
of a controller's function, `reconciler` calls it, `assembly` builds the controller, and `admission` does the same for
admission. `loading` finds apps by name, `install` installs their definitions, `client` is for programs outside a
control plane, and `remote` runs an app in its own process.
"""
