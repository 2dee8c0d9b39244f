//! Routing along the rows and columns of a mesh, computed from positions instead of tables.

use rand::{Rng, RngExt};

use crate::network::Tables;
use crate::packet::{NONE, Packet};
use crate::scenario::Way;

/// Output port of a direction without a link.
const EDGE: u8 = 0;

/// Positions of routers, and the ports that lead to their neighbours.
#[derive(Debug)]
pub struct Grid {
    columns: u32,
    way: Way,
    /// Column and row of each router.
    places: Vec<(u16, u16)>,
    /// Output ports of each router, by direction.
    ports: Vec<[u8; 4]>,
}

/// Number of the direction from a router to its neighbour: 0 and 1 for rising and falling columns, 2 and 3 for rising
/// and falling rows; `None` if they are not neighbours.
#[must_use]
pub fn direction(columns: usize, from: usize, to: usize) -> Option<usize> {
    let coordinates = |router: usize| (router % columns, router / columns);
    let ((x, y), (to_x, to_y)) = (coordinates(from), coordinates(to));
    match (x.abs_diff(to_x), y.abs_diff(to_y)) {
        (1, 0) => Some(usize::from(to_x < x)),
        (0, 1) => Some(2 + usize::from(to_y < y)),
        _ => None,
    }
}

impl Grid {
    /// A grid in which links join all neighbours, as the check of the scenario ensures.
    #[must_use]
    pub fn new(tables: &Tables, columns: usize, way: Way) -> Self {
        let mut ports = vec![[EDGE; 4]; tables.routers];
        for &(router, port) in &tables.link_port {
            let from = router as usize;
            let to = tables.next_router[from * tables.ports + usize::from(port)] as usize;
            if let Some(direction) = direction(columns, from, to) {
                ports[from][direction] = port;
            }
        }
        let places = (0..tables.routers).map(|router| ((router % columns) as u16, (router / columns) as u16)).collect();
        Self { columns: columns as u32, way, places, ports }
    }

    /// Draws the random part of a packet's path: its order of dimensions, or its intermediate router.
    pub fn draw(&self, source: u32, target: u32, stream: &mut impl Rng) -> u32 {
        if source == target {
            return NONE;
        }
        match self.way {
            Way::XFirst | Way::YFirst => NONE,
            Way::Either => u32::from(stream.random::<f64>() >= 0.5),
            Way::OverRectangle => {
                let ((x, y), (to_x, to_y)) = (self.places[source as usize], self.places[target as usize]);
                let wide = usize::from(x.abs_diff(to_x)) + 1;
                let drawn = stream.random_range(0..wide * (usize::from(y.abs_diff(to_y)) + 1));
                let (offset_x, offset_y) = (drawn % wide, drawn / wide);
                (u32::from(y.min(to_y)) + offset_y as u32) * self.columns + u32::from(x.min(to_x)) + offset_x as u32
            }
            Way::OverAny => stream.random_range(0..self.places.len() as u32),
        }
    }

    /// The router that a packet heads for now (its intermediate router or its target), and its virtual-channel class.
    #[inline]
    #[must_use]
    pub fn leg(&self, router: u32, packet: &Packet) -> (u32, u8) {
        match self.way {
            Way::XFirst | Way::YFirst => (packet.target, 0),
            Way::Either => (packet.target, u8::from(packet.cursor == 1)),
            Way::OverRectangle | Way::OverAny => {
                let waypoint = packet.cursor;
                if waypoint == router || waypoint == NONE { (packet.target, 1) } else { (waypoint, 0) }
            }
        }
    }

    /// Output port towards another router.
    #[inline]
    #[must_use]
    pub fn port(&self, router: u32, goal: u32, class: u8) -> u8 {
        let ((x, y), (to_x, to_y)) = (self.places[router as usize], self.places[goal as usize]);
        let y_first = match self.way {
            Way::YFirst => true,
            Way::Either => class == 1,
            _ => false,
        };
        let along_x = if y_first { y == to_y } else { x != to_x };
        let direction = if along_x { usize::from(to_x < x) } else { 2 + usize::from(to_y < y) };
        self.ports[router as usize][direction]
    }

    /// Records that a packet has reached its intermediate router.
    #[inline]
    pub fn advance(&self, router: u32, packet: &mut Packet) {
        if matches!(self.way, Way::OverRectangle | Way::OverAny) && packet.cursor == router {
            packet.cursor = NONE;
        }
    }
}
