//! The configuration of a tester: its ports, its cores and its priority.

use serde::{Deserialize, Serialize};

/// Ports and threads of a tester.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The ports; streams name them by index.
    pub ports: Vec<Port>,
    /// Core of the sending thread.
    #[serde(default)]
    pub send_cpu: Option<usize>,
    /// Core of a receiving thread, where a back end has one.
    #[serde(default)]
    pub receive_cpu: Option<usize>,
    /// `SCHED_FIFO` priority of the sending thread, 0 for the ordinary scheduler.
    #[serde(default = "default_priority")]
    pub priority: u8,
    /// Which clock stamps received frames, where a back end offers a choice.
    #[serde(default)]
    pub timestamps: Timestamps,
}

fn default_priority() -> u8 {
    40
}

/// One interface of the tester.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Its name in messages and facts.
    pub name: String,
    /// The interface.
    pub interface: String,
    /// Path of the network namespace of the interface (`/run/netns/NAME`); `None`: that of the calling thread.
    #[serde(default)]
    pub netns: Option<String>,
    /// How frames are sent.
    #[serde(default)]
    pub send: Send,
    /// How frames are received.
    #[serde(default)]
    pub receive: Receive,
}

/// Back ends that send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Send {
    /// The fastest one that the interface offers.
    #[default]
    Auto,
    /// Frames built and paced in the kernel, `BPF_PROG_TEST_RUN` with live frames.
    Live,
    /// An `AF_XDP` socket.
    AfXdp,
    /// An `AF_PACKET` ring.
    AfPacket,
    /// The port does not send.
    None,
}

/// Back ends that receive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Receive {
    /// The fastest one that the interface offers.
    #[default]
    Auto,
    /// An XDP program counts and drops.
    Xdp,
    /// An `AF_PACKET` ring and a thread.
    AfPacket,
    /// The port does not receive.
    None,
}

/// Clocks that stamp received frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Timestamps {
    /// Hardware where the interface has it.
    #[default]
    Auto,
    /// The kernel's clock.
    Software,
    /// The interface's clock.
    Hardware,
}
