//! Times the operations on this host.
