"""``routecast power``: power models, meters, metrics, and the operating point that needs the fewest watts."""
