"""The command that prepares a cluster for real nodes: `ctrlmgr node-config`."""
