"""Keeps the finalizer and the Ready condition of ServiceCIDRs."""
