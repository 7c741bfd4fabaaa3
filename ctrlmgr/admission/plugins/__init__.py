"""The admission plugins, one module for each.

`ctrlmgr.admission.plugin_registry` lists the plugins in the order in which they are called.
"""
