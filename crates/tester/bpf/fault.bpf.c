/* A device under test that does wrong on purpose, exactly as told, to see whether the tester finds it. */
#include "test_frame.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

enum { TEST_FRAMES, DROPPED, CORRUPTED, DELAYED, REFLECTED, COUNTERS };

/* Shared by all cores, because "every n-th" counts across them. Mirrored by name in src/device.rs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

inline_ __u64 count(__u32 what)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &what);

	return counter ? __sync_fetch_and_add(counter, 1) : 0;
}

static long spin(__u32 index, void *until)
{
	return bpf_ktime_get_ns() >= *(__u64 *)until;
}

SEC("xdp") int fault(struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	struct settings *set = settings_of(&settings);
	void *signature = signature_of(data, end);
	__u64 number, until;
	__u8 mac[ETH_ALEN];

	if (!set || !signature)
		return XDP_PASS;
	number = count(TEST_FRAMES) + 1;
	if (set->swallow || (set->drop_every && number % set->drop_every == 0)) {
		count(DROPPED);
		return XDP_DROP;
	}
	if (set->corrupt_every && number % set->corrupt_every == 0) {
		/* The UDP checksum covers it and no router looks at it. */
		at8(signature, TIME_AT + 7) ^= 0x10;
		count(CORRUPTED);
	}
	if (set->delay_ns) {
		until = bpf_ktime_get_ns() + set->delay_ns;
		bpf_loop(1 << 23, spin, &until, 0);
		count(DELAYED);
	}
	if (set->reflect) {
		if (data + ETH_HLEN > end)
			return XDP_PASS;
		__builtin_memcpy(mac, data, ETH_ALEN);
		__builtin_memcpy(data, data + ETH_ALEN, ETH_ALEN);
		__builtin_memcpy(data + ETH_ALEN, mac, ETH_ALEN);
		count(REFLECTED);
		return XDP_TX;
	}
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
