"""What all tests share: none of them times anything, so none fails because the machine is busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
