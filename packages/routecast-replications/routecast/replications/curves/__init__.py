"""Studies that draw curves of forwarded against offered load beside what a source states of them."""
