/* A wire that loses a share of its frames in one direction: those that arrive at its interface. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* Mirrored by crates/multistage/src/loss.rs: this share of 2^32 is dropped. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} share SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} dropped SEC(".maps");

SEC("xdp") int loss(struct xdp_md *context)
{
	__u32 zero = 0;
	__u64 *lost = bpf_map_lookup_elem(&share, &zero);
	__u64 *count = bpf_map_lookup_elem(&dropped, &zero);

	if (!lost || !count || bpf_get_prandom_u32() >= *lost)
		return XDP_PASS;
	__sync_fetch_and_add(count, 1);
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
