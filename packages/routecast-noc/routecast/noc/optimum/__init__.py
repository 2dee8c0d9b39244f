"""The least power that any splitting of flows over paths and planes can reach (ideal power control, IPC)."""
