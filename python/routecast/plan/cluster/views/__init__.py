"""Plans of clusters as tables and figures, for the terminal and for pages alike."""
