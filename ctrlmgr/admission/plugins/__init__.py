"""The admission plugins, a module each; `ctrlmgr.admission.registry` lists them in the order they are called."""
