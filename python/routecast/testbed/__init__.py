"""Real routers: test beds of namespaces or interfaces, devices under test, and Measure, the evaluator on the wire."""
