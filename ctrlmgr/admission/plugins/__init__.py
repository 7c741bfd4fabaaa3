"""The admission plugins, one module for each; `ctrlmgr.admission.registry` lists them in calling order."""
