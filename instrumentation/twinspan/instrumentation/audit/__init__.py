"""The design of an audit: cases, descriptor conditions, steps, a sealed plan.

Nothing here calls a model. A plan says which runs there are, in which order, and what its hash
is before there are results.
"""
