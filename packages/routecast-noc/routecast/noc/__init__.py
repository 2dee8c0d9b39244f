"""Networks on chip: the fabric inside a router chip, its routing, its voltage and frequency, its planes, its flits.

A designer asks what a mesh burns under a traffic matrix with a routing and a policy of dynamic voltage and frequency
scaling (DVFS), how far that is from the optimum, and whether latency holds at the flit level. After N. Li, "Energy
Saving and Virtualization Technologies in Switching" (PhD thesis, Politecnico di Torino, 2012), chapters 6 and 7.
"""
