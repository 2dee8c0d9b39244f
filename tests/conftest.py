"""What all tests share: none of them times anything, so none fails because the machine is busy."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# Runs at a desk look at new cases each time. Continuous integration repeats the same, so a failure is of the change.
settings.register_profile("untimed", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("untimed")

# Shells start what runs in the background deaf to Ctrl-C, nohup to SIGHUP, and children inherit it. Tests send both.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)
