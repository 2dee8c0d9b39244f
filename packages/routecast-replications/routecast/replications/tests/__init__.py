"""Tests of the wing ``replications``."""
