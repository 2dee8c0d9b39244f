//! The scenario compiled to a graph of nodes and the ways between them.
//!
//! Nodes are the task units, then the outgoing ports. Where flows alone decide the way, it is computed beforehand, so
//! that a frame's next node costs one table lookup.

use crate::activities;
use crate::error::SimError;
use crate::planes::{Group, Plane, Planes};
use crate::random::mix;
use crate::scenario::{Event, Route, RouteKind, Scenario, Target};
use crate::windows::{check_ways, most_frames};

/// The outside of the router.
pub const EXIT: u32 = u32::MAX;

/// No single node: a turn or a chance decides.
const DYNAMIC: u32 = u32::MAX - 1;

/// How a node chooses the next one.
#[derive(Debug, Clone)]
pub enum Router {
    /// Always the same node.
    One(u32),
    /// By flow.
    ByFlow(Vec<u32>),
    /// In turn.
    RoundRobin {
        /// The nodes.
        to: Vec<u32>,
        /// The one that is next.
        next: usize,
    },
    /// At random, by the frame's number: the choice does not depend on the order of computation.
    Random {
        /// The nodes.
        to: Vec<u32>,
        /// Cumulative chances.
        cumulative: Vec<f64>,
        /// Key of the random choice.
        key: u64,
    },
}

impl Router {
    /// The way on from a task unit by one of its routes.
    #[must_use]
    pub fn new(scenario: &Scenario, task: usize, route: &Route) -> Self {
        let to: Vec<u32> = route.to.iter().map(|&target| node_of(scenario, target)).collect();
        if to.is_empty() {
            return Self::One(EXIT);
        }
        let flows = &scenario.load.flows;
        let tasks = scenario.model.tasks.len();
        match route.kind {
            RouteKind::Egress => Self::ByFlow(flows.iter().map(|flow| (tasks + flow.egress) as u32).collect()),
            RouteKind::ByEgress => Self::ByFlow(flows.iter().map(|flow| to[flow.egress]).collect()),
            RouteKind::Rss if to.len() > 1 => Self::ByFlow(
                flows
                    .iter()
                    .map(|flow| {
                        let entry = flow.hash as usize & 127;
                        let queue = match route.indirection.as_slice() {
                            [] => entry,
                            table => table[entry % table.len()],
                        };
                        to[queue % to.len()]
                    })
                    .collect(),
            ),
            RouteKind::PerFlow => Self::ByFlow((0..flows.len()).map(|flow| to[flow % to.len()]).collect()),
            RouteKind::RoundRobin if to.len() > 1 => Self::RoundRobin { to, next: 0 },
            RouteKind::Random if to.len() > 1 => {
                let total: f64 = route.weights.iter().sum();
                let mut sum = 0.0;
                let cumulative = route
                    .weights
                    .iter()
                    .map(|weight| {
                        sum += weight / total;
                        sum
                    })
                    .collect();
                let key = mix(scenario.run.seed ^ mix(scenario.run.replication)) ^ mix(task as u64);
                Self::Random { to, cumulative, key: mix(key) }
            }
            _ => Self::One(to[0]),
        }
    }

    /// The node after this one for a frame.
    #[inline]
    pub fn target(&mut self, flow: u32, seq: u64) -> u32 {
        match self {
            Self::One(to) => *to,
            Self::ByFlow(table) => table[flow as usize],
            Self::RoundRobin { to, next } => {
                let chosen = to[*next];
                *next = if *next + 1 == to.len() { 0 } else { *next + 1 };
                chosen
            }
            Self::Random { to, cumulative, key } => {
                let u = (mix(*key ^ seq) >> 11) as f64 * (-53.0_f64).exp2();
                to[cumulative.partition_point(|&c| c <= u).min(to.len() - 1)]
            }
        }
    }
}

/// Where frames go from a node, passthroughs followed.
#[derive(Debug, Clone)]
pub enum Next {
    /// All to one node.
    Fixed(u32),
    /// By flow.
    ByFlow(Vec<u32>),
    /// By turn or at random: [`Graph::onward`] decides for each frame.
    Dynamic,
}

/// The compiled graph.
#[derive(Debug)]
pub struct Graph {
    /// Plane of each node.
    pub planes: Vec<Plane>,
    /// Router of each node (ports lead out).
    routers: Vec<Router>,
    /// Task units that get a copy of what a task unit has served.
    copies: Vec<Vec<u32>>,
    /// Whether any task unit sends copies at any time.
    pub makes_copies: bool,
    /// Next node of each node, and first node from each entry, where flows decide it once and for all.
    onward: Vec<Next>,
    /// First node of each flow, or [`DYNAMIC`].
    inward: Vec<u32>,
    /// Entry task unit of each flow.
    entry: Vec<u32>,
    /// Event nodes that are nevertheless stations, with the number of their group of servers; see [`Group`].
    pub grouped: Vec<Option<u32>>,
    /// Groups of servers inside the events.
    pub groups: Vec<Group>,
    /// Event nodes whose units frames carry on, with the number of the group that frames leave them by.
    pub doors: Vec<Option<u32>>,
    /// The most frames that can be at each node at once, where windows limit them.
    pub most_frames: Vec<usize>,
    /// Recursive nodes that only sources feed: they see frames in order without sorting.
    pub direct: Vec<bool>,
    /// Nodes in topological order.
    pub order: Vec<u32>,
    /// Number of edges from a source, at most; larger is further down.
    pub depth: Vec<u8>,
    /// Number of task units; node numbers from here on are ports.
    pub tasks: usize,
}

impl Graph {
    /// Compiles a checked scenario.
    ///
    /// # Errors
    ///
    /// A cycle in the task graph; a window that frames leave with units in hand; recursion asked for where it cannot be;
    /// a managed pool of more than 512 units; more activities than the calendar has numbers for.
    ///
    /// # Panics
    ///
    /// If the scenario was not checked and a source's port has no entry.
    pub fn compile(scenario: &Scenario) -> Result<Self, SimError> {
        let model = &scenario.model;
        let tasks = model.tasks.len();
        let nodes = tasks + model.ports.len();
        let mut routers: Vec<Router> =
            model.tasks.iter().enumerate().map(|(t, task)| Router::new(scenario, t, &task.route)).collect();
        routers.resize(nodes, Router::One(EXIT));

        let successors: Vec<Vec<u32>> =
            (0..nodes).map(|n| if n < tasks { successors_of(scenario, n) } else { vec![] }).collect();
        let order = topological(&successors)?;
        check_ways(scenario, &successors)?;
        let mut depth = vec![0_u8; nodes];
        for &n in &order {
            for &next in &successors[n as usize] {
                depth[next as usize] = depth[next as usize].max(depth[n as usize].saturating_add(1));
            }
        }

        let Planes { of_node: planes, sources_only, groups, grouped, doors } =
            Planes::assign(scenario, &order, &successors)?;
        let direct = (0..nodes).map(|n| planes[n] == Plane::Prefix && sources_only[n]).collect();
        let mut graph = Self {
            planes,
            direct,
            groups,
            doors,
            most_frames: most_frames(scenario, &order, &successors),
            grouped,
            routers,
            copies: model.tasks.iter().map(|task| task.copies.iter().map(|&copy| copy as u32).collect()).collect(),
            makes_copies: scenario.makes_copies(),
            onward: vec![],
            inward: vec![],
            entry: vec![],
            order,
            depth,
            tasks,
        };
        let flows = scenario.load.flows.len();
        graph.onward = (0..nodes as u32).map(|n| graph.next_from(n, flows)).collect();
        graph.entry = vec![0; flows];
        for source in &scenario.load.sources {
            for &flow in &source.flows {
                graph.entry[flow as usize] = model.ports[source.port].entry.expect("checked") as u32;
            }
        }
        graph.inward = (0..flows).map(|flow| graph.follow(graph.entry[flow], flow, false)).collect();
        activities::check(scenario, &graph)?;
        Ok(graph)
    }

    /// Changes the route of a task unit, which must not be a passthrough.
    pub fn reroute(&mut self, node: u32, router: Router, copies: Vec<u32>) {
        let flows = self.inward.len();
        self.routers[node as usize] = router;
        self.copies[node as usize] = copies;
        self.onward[node as usize] = self.next_from(node, flows);
    }

    /// Task units that get a copy of a frame which goes from a task unit to `next`: none gets the frame and a copy.
    pub fn copies_of(&self, task: u32, next: u32) -> impl Iterator<Item = u32> + '_ {
        self.copies[task as usize].iter().copied().filter(move |&copy| copy != next)
    }

    /// Where frames go after a node.
    #[must_use]
    pub fn next_of(&self, node: usize) -> &Next {
        &self.onward[node]
    }

    fn next_from(&self, from: u32, flows: usize) -> Next {
        let table: Vec<u32> = (0..flows).map(|flow| self.follow(from, flow, true)).collect();
        match table.first() {
            _ if table.contains(&DYNAMIC) => Next::Dynamic,
            Some(&only) if table.iter().all(|&node| node == only) => Next::Fixed(only),
            _ => Next::ByFlow(table),
        }
    }

    /// Follows a flow from a node (or, with `step`, from the one after it) through passthroughs.
    fn follow(&self, from: u32, flow: usize, step: bool) -> u32 {
        let (mut node, mut first) = (from, step);
        while node != EXIT && (first || self.planes[node as usize] == Plane::Passthrough) {
            first = false;
            node = match &self.routers[node as usize] {
                Router::One(to) => *to,
                Router::ByFlow(by_flow) => by_flow[flow],
                Router::RoundRobin { .. } | Router::Random { .. } => return DYNAMIC,
            };
        }
        node
    }

    /// The nodes where the flows first wait or are served; past the last node where a turn or a chance decides.
    pub fn first_nodes(&self) -> impl Iterator<Item = u32> {
        self.inward.iter().copied()
    }

    /// The node where a flow first waits or is served; none where a turn or a chance decides.
    #[cfg(feature = "lanes")]
    #[must_use]
    pub fn first_of(&self, flow: u32) -> Option<u32> {
        Some(self.inward[flow as usize]).filter(|&node| node != DYNAMIC)
    }

    /// The node where a frame that comes in first waits or is served.
    #[inline]
    pub fn enter(&mut self, flow: u32, seq: u64) -> u32 {
        match self.inward[flow as usize] {
            DYNAMIC => self.resolve(self.entry[flow as usize], flow, seq),
            node => node,
        }
    }

    /// The node that a frame goes to after `node`, passthroughs followed.
    #[inline]
    pub fn onward(&mut self, node: u32, flow: u32, seq: u64) -> u32 {
        if let Next::Fixed(next) = self.onward[node as usize] {
            return next;
        }
        self.choose(node, flow, seq)
    }

    #[inline(never)]
    fn choose(&mut self, node: u32, flow: u32, seq: u64) -> u32 {
        match &self.onward[node as usize] {
            Next::Fixed(next) => *next,
            Next::ByFlow(table) => table[flow as usize],
            Next::Dynamic => {
                let next = self.routers[node as usize].target(flow, seq);
                self.resolve(next, flow, seq)
            }
        }
    }

    fn resolve(&mut self, mut node: u32, flow: u32, seq: u64) -> u32 {
        while node != EXIT && self.planes[node as usize] == Plane::Passthrough {
            node = self.routers[node as usize].target(flow, seq);
        }
        node
    }
}

fn node_of(scenario: &Scenario, target: Target) -> u32 {
    match target {
        Target::Task(task) => task as u32,
        Target::Port(port) => (scenario.model.tasks.len() + port) as u32,
    }
}

/// Where frames can go next from a task unit, whichever of its routes is in force.
fn successors_of(scenario: &Scenario, task: usize) -> Vec<u32> {
    let changed = scenario.run.events.iter().filter_map(|event| match event {
        Event::Reroute { task: other, route, .. } if *other == task => Some(&route.to),
        _ => None,
    });
    std::iter::once(&scenario.model.tasks[task].route.to)
        .chain(changed)
        .flatten()
        .map(|&target| node_of(scenario, target))
        .collect()
}

fn topological(successors: &[Vec<u32>]) -> Result<Vec<u32>, SimError> {
    let mut incoming = vec![0_usize; successors.len()];
    for &next in successors.iter().flatten() {
        incoming[next as usize] += 1;
    }
    let mut order: Vec<u32> = (0..successors.len() as u32).filter(|&n| incoming[n as usize] == 0).collect();
    let mut done = 0;
    while let Some(&n) = order.get(done) {
        done += 1;
        for &next in &successors[n as usize] {
            incoming[next as usize] -= 1;
            if incoming[next as usize] == 0 {
                order.push(next);
            }
        }
    }
    match incoming.iter().position(|&left| left > 0) {
        Some(task) => Err(SimError::Cycle { task }),
        None => Ok(order),
    }
}
