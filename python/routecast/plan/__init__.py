"""Planning: which machines to buy, which to switch on, how to run them."""
