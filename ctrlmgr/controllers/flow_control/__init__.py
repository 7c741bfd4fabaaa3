"""The controllers of FlowSchemas and PriorityLevelConfigurations, which run in every process that serves the API.

The module `ensurer` decides which of the objects that Kubernetes defines must be created, corrected or deleted, and
`producer` writes these changes. The module `dangling_condition` keeps the condition of FlowSchemas that refer to a
missing priority level.
"""
