//! The data plane of a router of many machines.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use routecast_multistage::{Flow, Gate, Loss, Mac, Namespace, Plane, Role, Table, Weight};
use routecast_tester::{Result as Done, TesterError as Refusal};

use crate::tester::{TesterError, convert};

type Members = Vec<(u8, f64)>;

fn weights(members: Members) -> Vec<Weight> {
    members.into_iter().map(|(number, weight)| Weight { number, weight }).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each call leaves maps whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<T: Send, R: Send>(
    py: Python<'_>,
    inner: &Mutex<Option<T>>,
    work: impl FnOnce(&mut T) -> Done<R> + Send,
) -> PyResult<R> {
    let done = py.detach(|| locked(inner).as_mut().map_or(Err(Refusal::Closed), work));
    done.map_err(|error| convert(&error))
}

/// A load balancer's eBPF programs, attached until it is closed.
#[pyclass(module = "routecast.lab._lab", frozen)]
pub struct LoadBalancer {
    inner: Mutex<Option<Plane>>,
}

#[pymethods]
impl LoadBalancer {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let attached = py.detach(|| Plane::attach(config));
        attached.map(|plane| Self { inner: Mutex::new(Some(plane)) }).map_err(|error| convert(&error))
    }

    fn publish(&self, py: Python<'_>, members: Members, seed: u64, epoch: u64) -> PyResult<String> {
        let members = weights(members);
        with(py, &self.inner, move |plane| plane.publish(&members, seed, epoch)).map(|digest| format!("{digest:016x}"))
    }

    fn set_member(&self, py: Python<'_>, number: u8, mac: Option<[u8; 6]>) -> PyResult<()> {
        with(py, &self.inner, |plane| plane.set_member(number, mac))
    }

    fn set_silent(&self, py: Python<'_>, number: u8, is_silent: bool) -> PyResult<()> {
        with(py, &self.inner, |plane| plane.set_silent(number, is_silent))
    }

    fn set_role(&self, py: Python<'_>, role: &str) -> PyResult<()> {
        let role = match role {
            "works" => Role::Works,
            "stands_by" => Role::StandsBy,
            "hangs" => Role::Hangs,
            other => {
                let refusal = Refusal::value("role", other, "works, stands_by, hangs");
                return Err(convert(&refusal));
            }
        };
        with(py, &self.inner, |plane| plane.set_role(role))
    }

    fn set_loss(&self, py: Python<'_>, loss_ratio: f64) -> PyResult<()> {
        with(py, &self.inner, |plane| plane.set_loss(loss_ratio))
    }

    fn answers(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        with(py, &self.inner, |plane| plane.answers())
    }

    fn drain(&self, py: Python<'_>, number: u8, idle_s: f64, deadline_s: f64) -> PyResult<()> {
        with(py, &self.inner, |plane| plane.drain(number, idle_s, deadline_s))
    }

    fn set_neighbour(&self, py: Python<'_>, mac: [u8; 6], interface: Option<&str>) -> PyResult<()> {
        with(py, &self.inner, |plane| plane.set_neighbour(mac, interface))
    }

    fn neighbours(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let macs = with(py, &self.inner, |plane| plane.neighbours())?;
        Ok(macs.into_iter().map(|mac| mac.map(|octet| format!("{octet:02x}")).join(":")).collect())
    }

    fn add_own(&self, py: Python<'_>, address: IpAddr) -> PyResult<()> {
        with(py, &self.inner, |plane| plane.add_own(address))
    }

    fn beat(&self, py: Python<'_>) -> PyResult<()> {
        with(py, &self.inner, Plane::beat)
    }

    fn paths(&self, py: Python<'_>) -> PyResult<BTreeMap<u8, Vec<u64>>> {
        with(py, &self.inner, |plane| plane.paths())
    }

    fn status(&self, py: Python<'_>) -> PyResult<String> {
        with(py, &self.inner, |plane| plane.status()).map(|status| status.to_string())
    }

    fn audit(&self, py: Python<'_>) -> PyResult<String> {
        with(py, &self.inner, |plane| plane.audit()).map(|audit| audit.to_string())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.inner).take()));
    }
}

/// The program before a back-end router, attached until it is closed.
#[pyclass(module = "routecast.lab._lab", frozen)]
pub struct MemberGate {
    inner: Mutex<Option<Gate>>,
}

#[pymethods]
impl MemberGate {
    #[new]
    #[pyo3(signature = (interface, netns=None, pins=None))]
    fn new(py: Python<'_>, interface: &str, netns: Option<&str>, pins: Option<&str>) -> PyResult<Self> {
        let attached = py.detach(|| Gate::attach(interface, netns, pins.map(Path::new)));
        attached.map(|gate| Self { inner: Mutex::new(Some(gate)) }).map_err(|error| convert(&error))
    }

    #[pyo3(signature = (*, cap_pps, queue_frames, hangs, forwards, loss=0.0))]
    fn set(
        &self,
        py: Python<'_>,
        cap_pps: f64,
        queue_frames: u64,
        hangs: bool,
        forwards: bool,
        loss: f64,
    ) -> PyResult<()> {
        with(py, &self.inner, |gate| gate.set(cap_pps, queue_frames, hangs, forwards, loss))
    }

    fn counters(&self, py: Python<'_>) -> PyResult<String> {
        with(py, &self.inner, |gate| gate.counters()).map(|counters| counters.to_string())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.inner).take()));
    }
}

/// The program of a wire that loses frames in one direction, attached until it is closed, or removed if it is pinned.
#[pyclass(module = "routecast.lab._lab", frozen)]
pub struct FrameLoss {
    inner: Mutex<Option<Loss>>,
}

#[pymethods]
impl FrameLoss {
    #[new]
    #[pyo3(signature = (interface, netns_path=None, pins=None))]
    fn new(py: Python<'_>, interface: &str, netns_path: Option<&str>, pins: Option<&str>) -> PyResult<Self> {
        let attached = py.detach(|| Loss::attach(interface, netns_path, pins.map(Path::new)));
        attached.map(|loss| Self { inner: Mutex::new(Some(loss)) }).map_err(|error| convert(&error))
    }

    fn set(&self, py: Python<'_>, loss_ratio: f64) -> PyResult<()> {
        with(py, &self.inner, |loss| loss.set(loss_ratio))
    }

    fn dropped(&self, py: Python<'_>) -> PyResult<u64> {
        with(py, &self.inner, |loss| loss.dropped())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.inner).take()));
    }

    #[staticmethod]
    fn remove(py: Python<'_>, pins: &str) -> PyResult<()> {
        py.detach(|| Loss::remove(Path::new(pins))).map_err(|error| convert(&error))
    }
}

/// Netlink sockets in a network namespace.
#[pyclass(module = "routecast.lab._lab", frozen)]
pub struct NamespaceNetlink {
    inner: Mutex<Option<Namespace>>,
}

fn address_of(text: &str) -> Done<IpAddr> {
    text.parse().map_err(|_| Refusal::value("address", text, "an IPv4 or IPv6 address"))
}

fn mac_of(text: &str) -> Done<Mac> {
    let wrong = || Refusal::value("MAC address", text, "six octets, such as 02:00:00:00:00:01");
    let octets: Option<Vec<u8>> = text
        .split(':')
        .map(|octet| u8::from_str_radix(octet, 16).ok().filter(|_| octet.len() <= 2 && !octet.starts_with('+')))
        .collect();
    octets.ok_or_else(wrong)?.try_into().map_err(|_| wrong())
}

#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pymethods]
impl NamespaceNetlink {
    #[new]
    fn new(py: Python<'_>, netns_path: &str) -> PyResult<Self> {
        let opened = py.detach(|| Namespace::open(Some(netns_path)));
        opened.map(|namespace| Self { inner: Mutex::new(Some(namespace)) }).map_err(|error| convert(&error))
    }

    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        with(py, &self.inner, |namespace| Ok(namespace.descriptor()))
    }

    fn lookups(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<(String, String)>> {
        let found = with(py, &self.inner, |namespace| namespace.lookups(limit))?;
        Ok(found.into_iter().map(|(interface, address)| (interface, address.to_string())).collect())
    }

    fn set_neighbours(&self, py: Python<'_>, interface: &str, entries: Vec<(String, String)>) -> PyResult<()> {
        let parsed = |(address, mac): &(String, String)| Ok((address_of(address)?, mac_of(mac)?));
        let entries: Done<Vec<_>> = entries.iter().map(parsed).collect();
        let entries = entries.map_err(|error| convert(&error))?;
        with(py, &self.inner, |namespace| namespace.set_neighbours(interface, &entries))
    }

    fn remove_neighbours(&self, py: Python<'_>, interface: &str, addresses: Vec<String>) -> PyResult<()> {
        let addresses: Done<Vec<_>> = addresses.iter().map(|address| address_of(address)).collect();
        let addresses = addresses.map_err(|error| convert(&error))?;
        with(py, &self.inner, |namespace| namespace.remove_neighbours(interface, &addresses))
    }

    fn contents(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        with(py, &self.inner, Namespace::contents)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.inner).take()));
    }
}

/// Row of a flow: addresses, protocol, ports (`None`: none, or a fragment).
#[pyfunction]
pub fn flow_row(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ports: Option<(u16, u16)>,
    is_fragment: bool,
) -> usize {
    Flow { source, destination, protocol, ports, is_fragment }.row()
}

/// Members of a row in the order in which they take it, for each row asked for.
#[pyfunction]
pub fn flow_table(members: Members, seed: u64, rows: Vec<usize>) -> PyResult<Vec<Vec<u8>>> {
    let table = Table::new(&weights(members), seed);
    let choices = |row: usize| {
        let row = table.rows.get(row).ok_or_else(|| TesterError::new_err(("row", format!("there is no row {row}"))))?;
        Ok(row.to_le_bytes().into_iter().filter(|&number| number != routecast_multistage::table::NOBODY).collect())
    };
    rows.into_iter().map(choices).collect()
}
