"""Studies that explain the busy time of a core, and with it its power, by interrupts, polls, packets and the clock."""
