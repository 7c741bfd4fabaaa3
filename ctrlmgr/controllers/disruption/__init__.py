"""The disruption controller: writes the number of allowed disruptions to the status of each PodDisruptionBudget."""

from __future__ import annotations

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="disruption-controller",
    aliases=("disruption",),
    does="computes how many evictions each PodDisruptionBudget allows",
    component="controllermanager",
    watches=(Resource("policy", "poddisruptionbudgets"), PODS),
    replays=True,
    shared_kinds=(Resource("policy", "poddisruptionbudgets"), PODS),
    builder="ctrlmgr.controllers.disruption.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""
