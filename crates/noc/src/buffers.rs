//! State of the virtual channels: the flits at inputs, and the credits of outputs.

use crate::network::Tables;
use crate::packet::NONE;

/// A virtual channel at an input of a router.
#[derive(Debug, Clone)]
pub struct Input {
    /// The output that feeds it; its credits go there.
    pub up: u32,
    /// Packet at its front, or `NONE`.
    pub packet: u32,
    /// Flits that wait.
    pub waiting: u16,
    /// Flits of the packet at the front that have not left.
    pub left: u16,
    /// Bit of the output virtual channel of its packet, or `NOBODY` while it has none.
    pub out: u8,
    /// Where the search among granted virtual channels begins.
    pub accept: u8,
    /// Whether the head of its packet has not left.
    pub head: bool,
}

/// A virtual channel at an output of a router.
#[derive(Debug, Clone)]
pub struct Output {
    /// The virtual channel at the far end.
    pub down: u32,
    /// Credits: free places at the far end, as known here.
    pub credits: u16,
    /// Bit of the input whose packet owns it, or `NOBODY`.
    pub owner: u8,
    /// Where the search among requests begins.
    pub grant: u8,
}

/// A port of a router, both its input and its output.
#[derive(Debug, Clone)]
pub struct Port {
    /// Flits that have crossed to the output.
    pub crossed: u64,
    /// Of the output: cycles until a flit is at the far end.
    pub flit_cycles: u16,
    /// Of the input: cycles until a credit is at the far end.
    pub credit_cycles: u16,
    /// Of the output: input bit where the search among requests for the switch begins.
    pub grant: u8,
    /// Of the input: output where the search among grants begins.
    pub accept: u8,
    /// Of the input: bit where the search among its virtual channels begins.
    pub channel: u8,
    /// Of the output: whether its credits are unlimited.
    pub endless: bool,
}

/// Neither owner nor output.
pub const NOBODY: u8 = u8::MAX;

/// Inputs, all empty.
#[must_use]
pub fn inputs(tables: &Tables) -> Vec<Input> {
    let empty = Input { up: 0, packet: NONE, waiting: 0, left: 0, out: NOBODY, accept: 0, head: false };
    spread(tables, &empty, |input, port, vc| input.up = tables.up[port] + vc)
}

/// Outputs with `flits` credits each.
#[must_use]
pub fn outputs(tables: &Tables, flits: u32) -> Vec<Output> {
    let free = Output { down: 0, credits: flits as u16, owner: NOBODY, grant: 0 };
    spread(tables, &free, |output, port, vc| output.down = tables.down[port] + vc)
}

/// Ports by `router * ports + port`.
#[must_use]
pub fn ports(tables: &Tables) -> Vec<Port> {
    let port = |at: usize| Port {
        crossed: 0,
        flit_cycles: tables.flit_cycles[at] as u16,
        credit_cycles: tables.credit_cycles[at] as u16,
        grant: 0,
        accept: 0,
        channel: 0,
        endless: tables.endless[at],
    };
    (0..tables.routers * tables.ports).map(port).collect()
}

fn spread<T: Clone>(tables: &Tables, template: &T, mut set: impl FnMut(&mut T, usize, u32)) -> Vec<T> {
    let mut all = vec![template.clone(); tables.routers << tables.shift];
    for router in 0..tables.routers {
        for bit in 0..tables.ports * tables.vcs {
            let port = router * tables.ports + bit / tables.vcs;
            set(&mut all[(router << tables.shift) + bit], port, (bit % tables.vcs) as u32);
        }
    }
    all
}

/// Packets that wait in a virtual channel behind the one at its front.
#[derive(Debug, Clone)]
pub struct Behind {
    packets: Vec<u32>,
    ends: Vec<(u16, u16)>,
    shift: u32,
}

impl Behind {
    /// Queues for so many packets each.
    #[must_use]
    pub fn new(queues: usize, most: usize) -> Self {
        let size = most.next_power_of_two();
        Self { packets: vec![NONE; queues * size], ends: vec![(0, 0); queues], shift: size.trailing_zeros() }
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, queue: usize, packet: u32) {
        let mask = (1_usize << self.shift) - 1;
        let (_, last) = &mut self.ends[queue];
        self.packets[queue << self.shift | usize::from(*last) & mask] = packet;
        *last = last.wrapping_add(1);
    }

    /// Takes the first packet.
    #[inline]
    pub fn pop(&mut self, queue: usize) -> Option<u32> {
        let mask = (1_usize << self.shift) - 1;
        let (first, last) = &mut self.ends[queue];
        if first == last {
            return None;
        }
        let packet = self.packets[queue << self.shift | usize::from(*first) & mask];
        *first = first.wrapping_add(1);
        Some(packet)
    }
}
