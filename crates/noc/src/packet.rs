//! Packets inside the network. Flits have no record of their own: a virtual channel holds whole packets one after
//! another, so a count says which flits of which packet it holds.

/// No packet.
pub const NONE: u32 = u32::MAX;

/// A packet from the moment its head leaves the source queue until its tail is ejected.
#[derive(Debug, Clone)]
pub struct Packet {
    /// When it was created, cycles of the plane; not an integer where the clocks differ.
    pub created: f64,
    /// When its head left the source queue.
    pub entered: u64,
    /// Router of its target.
    pub target: u32,
    /// Node that receives it.
    pub node: u32,
    /// State of its routing: next hop of its path, or router between its legs.
    pub cursor: u32,
    /// Flits.
    pub length: u16,
    /// Flits ejected.
    pub ejected: u16,
    /// Routers passed by the head.
    pub routers: u16,
    /// Output port of its node at the last router.
    pub eject_port: u8,
    /// Whether it counts.
    pub measured: bool,
}

/// A pool of packet records.
#[derive(Debug, Clone, Default)]
pub struct Slab {
    packets: Vec<Packet>,
    entered: Vec<Vec<u32>>,
    free: Vec<u32>,
}

impl Slab {
    /// Adds a packet; returns its number.
    pub fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(number) = self.free.pop() {
            self.packets[number as usize] = packet;
            self.entered[number as usize].clear();
            return number;
        }
        self.packets.push(packet);
        self.entered.push(Vec::new());
        (self.packets.len() - 1) as u32
    }

    /// Removes a packet.
    pub fn remove(&mut self, number: u32) {
        self.free.push(number);
    }

    /// A packet.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> &Packet {
        &self.packets[number as usize]
    }

    /// A packet to change.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> &mut Packet {
        &mut self.packets[number as usize]
    }

    /// Notes that the next flit of a packet leaves the source queue. The low 32 bits of a cycle are enough for spans.
    #[inline]
    pub fn enter(&mut self, number: u32, cycle: u64) {
        self.entered[number as usize].push(cycle as u32);
    }

    /// Cycles since a flit of a packet left the source queue.
    #[inline]
    #[must_use]
    pub fn flit_age(&self, number: u32, flit: u16, cycle: u64) -> u64 {
        u64::from((cycle as u32).wrapping_sub(self.entered[number as usize][usize::from(flit)]))
    }
}
