"""The command for real nodes: `ctrlmgr node-config`."""
