"""Studies that run designed experiments and put what a source states of them beside what is found."""
