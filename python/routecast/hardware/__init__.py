"""Hosts as data: what they have, and what each elementary operation costs on them."""
