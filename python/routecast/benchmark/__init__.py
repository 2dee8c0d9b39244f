"""The procedures of RFC 2544 and its updates, over any evaluator."""
