"""Which machines to buy: the goal program, simpler designs beside it, and the bound below all of them."""
