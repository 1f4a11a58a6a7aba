"""Specifications of the protocols for the model checker spin."""
