"""What is shown of a mapping onto a network processor: tables, the load by engine, the folder."""
