"""The controllers of FlowSchemas and PriorityLevelConfigurations, which run in every process that serves the API.

`upkeep` decides which of Kubernetes' objects to create, correct or delete, and `producer` does so. `dangling` keeps the
condition of FlowSchemas that refer to a missing priority level.
"""
