"""One step of the day: which machines to switch on, and what they draw."""
