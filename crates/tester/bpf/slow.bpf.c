/* Fixed busy work for every frame before the network stack sees it: a slower processor on the same machine. */
#include "test_frame.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} residue SEC(".maps");

SEC("xdp") int slow(struct xdp_md *context)
{
	struct settings *set = settings_of(&settings);
	__u32 zero = 0;
	__u64 *left;

	if (!set)
		return XDP_PASS;
	left = bpf_map_lookup_elem(&residue, &zero);
	if (left)
		*left = work(set->iterations);
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
