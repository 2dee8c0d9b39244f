/* A router in XDP: looks up the kernel's FIB, counts the TTL down and redirects. What it cannot decide it passes. */
#include "test_frame.h"
#include "fib.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

enum { RESIDUE = OUTCOMES, COUNTERS };

/* Mirrored by name in src/device.rs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

inline_ void count(__u32 what)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &what);

	if (counter)
		(*counter)++;
}

inline_ int leave(__u32 what, int action)
{
	count(what);
	return action;
}

SEC("xdp") int forward(struct xdp_md *context)
{
	struct settings *set = settings_of(&settings);
	__u32 what;
	int action;

	if (set && set->iterations) {
		__u32 key = RESIDUE;
		__u64 *left = bpf_map_lookup_elem(&counters, &key);

		if (left)
			*left = work(set->iterations);
	}
	action = by_fib(context, &what);
	return leave(what, action);
}

char _license[] SEC("license") = "Dual MIT/GPL";
