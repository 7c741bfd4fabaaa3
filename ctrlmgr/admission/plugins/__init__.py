"""The admission plugins, one module for each plugin.

`ctrlmgr.admission.plugin_registry` lists the plugins in the order in which they are called.
"""
