"""The file that people write, ``*.noc.toml``: what it may say, what contradicts itself, and what it describes."""
