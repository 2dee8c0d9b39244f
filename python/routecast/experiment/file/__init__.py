"""The file that people write, ``*.experiment.toml``: what it may say, what contradicts itself, what it describes."""
