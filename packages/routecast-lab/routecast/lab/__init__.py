"""The lab: test beds, benchmarks, and the commands that measure. The core runs without it."""
