"""Repairs a frozen payload, and measures whether the repair holds."""
