"""Energy-efficient clusters of back-end routers: design, saving algorithms, bound (Li 2012, ch. 8)."""

from routecast.plan.cluster.model import ClusterProblem, Design, MachineGroup, Schedule

__all__ = ["ClusterProblem", "Design", "MachineGroup", "Schedule"]
