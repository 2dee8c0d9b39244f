"""Which machines to switch off over a day, and what switching costs."""

from routecast.plan.cluster.saving.model import Saving, SavingRules

__all__ = ["Saving", "SavingRules"]
