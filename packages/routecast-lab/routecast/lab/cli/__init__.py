"""The commands that measure, and those that read what was measured."""
