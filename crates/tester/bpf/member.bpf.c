/* Before a back-end router: a cap on what it forwards, and a silent hang or loss, on demand; or the router itself, in XDP.
 *
 * The cap is an emulation of a slower machine: a server with a constant time a frame and a finite queue, of which frames
 * that find it full are dropped. Frames that find room are not held back, so what it emulates is throughput and loss, not
 * delay.
 */
#include "fib.h"

/* Mirrored by src/plane.rs. */
struct limits {
	__u64 service_ns; /* time a frame; 0: no cap */
	__u64 queue;      /* frames that may wait */
	__u64 hangs;      /* drops everything, and says nothing */
	__u64 loss;       /* this share of 2^32 is dropped, and it says nothing */
	__u64 forwards;   /* by the kernel's FIB, here; the kernel gets what that does not decide */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct limits);
} limits SEC(".maps");

enum { TO_KERNEL, CAPPED, HUNG, IN_XDP, LOST, COUNTERS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* When the server is done with all that it has taken. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} done SEC(".maps");

static __always_inline int leave(__u32 what, int action)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &what);

	if (counter)
		__sync_fetch_and_add(counter, 1);
	return action;
}

SEC("xdp") int member(struct xdp_md *context)
{
	__u32 zero = 0;
	struct limits *set = bpf_map_lookup_elem(&limits, &zero);
	__u64 *until = bpf_map_lookup_elem(&done, &zero), now;
	__u32 what = OTHER;
	int action = XDP_PASS;

	if (!set || !until)
		return XDP_PASS;
	if (set->hangs)
		return leave(HUNG, XDP_DROP);
	if (set->loss && bpf_get_prandom_u32() < set->loss)
		return leave(LOST, XDP_DROP);
	if (set->service_ns) {
		now = bpf_ktime_get_ns();
		if ((__s64)(*until - now) < 0)
			*until = now;
		if (*until - now > set->queue * set->service_ns)
			return leave(CAPPED, XDP_DROP);
		*until += set->service_ns;
	}
	if (set->forwards)
		action = by_fib(context, &what);
	return leave(what == FORWARDED || what == REFUSED ? IN_XDP : TO_KERNEL, action);
}

char _license[] SEC("license") = "Dual MIT/GPL";
