"""Flows, whose jobs wait for each other, and groups, whose jobs are counted together."""

from faena.flows.flow import Flow, FlowView, NodeView
from faena.flows.group import Group, GroupView
from faena.flows.plan import Node, Plan, chain, chord

__all__ = [
    "Flow",
    "FlowView",
    "Group",
    "GroupView",
    "Node",
    "NodeView",
    "Plan",
    "chain",
    "chord",
]
