"""What all tests share: none of them times anything, so none fails because the machine is busy."""

from __future__ import annotations

import os

from hypothesis import settings

# Runs at a desk look at new cases each time. Continuous integration repeats the same, so a failure is of the change.
settings.register_profile("untimed", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("untimed")
