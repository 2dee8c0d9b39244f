"""Studies of why a core's busy time, and with it its power, is what it is: interrupts, polls, packets and the clock."""
