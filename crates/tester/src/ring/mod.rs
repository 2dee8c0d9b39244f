//! Back ends on rings shared with user space: `AF_PACKET` and `AF_XDP`.
