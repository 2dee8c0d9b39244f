"""Networks on chip as tables, figures and maps of their links, for the terminal and for pages alike."""
