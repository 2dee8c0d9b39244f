"""Replications: models of single published measurements, and the studies that put them beside what was measured."""
