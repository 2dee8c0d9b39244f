//! Routing, ready for the engine: output ports instead of links.

use rand::{Rng, RngExt};

use crate::grid::Grid;
use crate::network::Tables;
use crate::packet::Packet;
use crate::scenario::{Path, Routing};

/// The next hop of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Output port.
    pub port: u8,
    /// Virtual-channel class allowed on it.
    pub class: u8,
}

/// Any virtual channel: channels of nodes close no cycle.
pub const ANY_CLASS: u8 = u8::MAX;

/// Routing of a scenario.
#[derive(Debug)]
pub enum Routes {
    /// By router and target.
    Table(Vec<Hop>),
    /// By the path that the packet drew.
    Paths(Flows),
    /// Along rows and columns.
    Grid(Grid),
    /// By arrival and target: offsets of allowed ports.
    Adaptive {
        /// First allowed port, by `arrival * routers + target`; one entry more at the end.
        first: Vec<u32>,
        /// Allowed ports.
        ports: Vec<u8>,
    },
}

/// Paths of all flows between routers.
#[derive(Debug)]
pub struct Flows {
    /// First path, by `source * routers + target`; one entry more at the end.
    first: Vec<u32>,
    /// Cumulated share within its flow, and first hop, of each path.
    paths: Vec<(f64, u32)>,
    hops: Vec<Hop>,
}

impl Flows {
    fn new(tables: &Tables, paths: &[Path]) -> Self {
        let flow = |path: &Path| path.source * tables.routers + path.target;
        let mut order: Vec<&Path> = paths.iter().filter(|path| path.share > 0.0).collect();
        order.sort_by_key(|path| flow(path));
        let mut first = vec![0_u32; tables.routers * tables.routers + 1];
        for path in &order {
            first[flow(path) + 1] += 1;
        }
        for index in 1..first.len() {
            first[index] += first[index - 1];
        }
        let (mut paths, mut hops) = (Vec::new(), Vec::new());
        let mut sum = 0.0;
        for (index, path) in order.iter().enumerate() {
            sum = if index as u32 == first[flow(path)] { path.share } else { sum + path.share };
            paths.push((sum, hops.len() as u32));
            for (position, &link) in path.links.iter().enumerate() {
                let port = tables.link_port[link as usize].1;
                hops.push(Hop { port, class: path.layers.get(position).copied().unwrap_or(0) });
            }
        }
        Self { first, paths, hops }
    }

    fn draw(&self, flow: usize, stream: &mut impl Rng) -> u32 {
        let paths = &self.paths[self.first[flow] as usize..self.first[flow + 1] as usize];
        match paths {
            [] => 0,
            [only] => only.1,
            [.., last] => {
                let at = stream.random::<f64>() * last.0;
                paths[paths.partition_point(|path| path.0 <= at).min(paths.len() - 1)].1
            }
        }
    }
}

impl Routes {
    /// Compiles the routing of a checked scenario.
    #[must_use]
    pub fn new(tables: &Tables, routing: &Routing) -> Self {
        let routers = tables.routers;
        match routing {
            Routing::Table { links, class, .. } => {
                let mut hops = vec![Hop { port: 0, class: 0 }; routers * routers];
                for (router, row) in links.iter().enumerate() {
                    for (target, &link) in row.iter().enumerate() {
                        if router != target {
                            let class = class.get(router).map_or(0, |classes| classes[target]);
                            let port = tables.link_port.get(link as usize).map_or(0, |&(_, port)| port);
                            hops[router * routers + target] = Hop { port, class };
                        }
                    }
                }
                Self::Table(hops)
            }
            Routing::Paths { paths, .. } => Self::Paths(Flows::new(tables, paths)),
            &Routing::Grid { columns, way } => Self::Grid(Grid::new(tables, columns, way)),
            Routing::Adaptive { choices, .. } => {
                let (mut first, mut ports) = (vec![0], Vec::new());
                for row in choices {
                    for links in row {
                        ports.extend(links.iter().map(|&link| tables.link_port[link as usize].1));
                        first.push(ports.len() as u32);
                    }
                }
                Self::Adaptive { first, ports }
            }
        }
    }

    /// Draws the routing state of a packet at its source router.
    pub fn draw(&self, tables: &Tables, source: u32, target: u32, stream: &mut impl Rng) -> u32 {
        match self {
            Self::Paths(flows) => flows.draw(source as usize * tables.routers + target as usize, stream),
            Self::Grid(grid) => grid.draw(source, target, stream),
            Self::Table(_) | Self::Adaptive { .. } => 0,
        }
    }

    /// Next hop of a packet at a router; `None` if several are allowed (see [`Routes::choices`]).
    #[inline]
    #[must_use]
    pub fn hop(&self, tables: &Tables, router: u32, packet: &Packet) -> Option<Hop> {
        let (goal, class) = match self {
            Self::Grid(grid) => grid.leg(router, packet),
            _ => (packet.target, 0),
        };
        if router == goal {
            return Some(Hop { port: packet.eject_port, class: ANY_CLASS });
        }
        match self {
            Self::Table(hops) => Some(hops[router as usize * tables.routers + packet.target as usize]),
            Self::Paths(flows) => Some(flows.hops[packet.cursor as usize]),
            Self::Grid(grid) => Some(Hop { port: grid.port(router, goal, class), class }),
            Self::Adaptive { .. } => None,
        }
    }

    /// Advances a packet's path past the hop that was decided at a router.
    #[inline]
    pub fn advance(&self, router: u32, packet: &mut Packet) {
        match self {
            Self::Paths(_) => packet.cursor += 1,
            Self::Grid(grid) => grid.advance(router, packet),
            _ => {}
        }
    }

    /// Whether routers choose among several outputs.
    #[inline]
    #[must_use]
    pub fn is_adaptive(&self) -> bool {
        matches!(self, Self::Adaptive { .. })
    }

    /// Ports that an adaptive routing allows.
    #[inline]
    #[must_use]
    pub fn choices(&self, tables: &Tables, arrival: u32, target: u32) -> &[u8] {
        let Self::Adaptive { first, ports } = self else { return &[] };
        let entry = arrival as usize * tables.routers + target as usize;
        &ports[first[entry] as usize..first[entry + 1] as usize]
    }
}
