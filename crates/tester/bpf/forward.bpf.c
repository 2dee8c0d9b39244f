/* A router in XDP: looks up the kernel's FIB, counts the TTL down and redirects. What it cannot decide it passes. */
#include "test_frame.h"

#define AF_INET 2
#define AF_INET6 10

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

enum { FORWARDED, NO_ROUTE, NO_NEIGHBOUR, TOO_BIG, TTL_EXPIRED, REFUSED, OTHER, RESIDUE, COUNTERS };

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
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	struct bpf_fib_lookup route = {};
	struct settings *set = settings_of(&settings);
	struct ethhdr *ethernet = data;
	struct ipv6hdr *ipv6 = data + sizeof(*ethernet);
	struct iphdr *ipv4 = data + sizeof(*ethernet);
	__u32 sum;

	if (data + sizeof(*ethernet) + sizeof(*ipv4) > end)
		return leave(OTHER, XDP_PASS);
	if (set && set->iterations) {
		__u32 key = RESIDUE;
		__u64 *left = bpf_map_lookup_elem(&counters, &key);

		if (left)
			*left = work(set->iterations);
	}
	route.ifindex = context->ingress_ifindex;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		if (ipv4->ihl != 5)
			return leave(OTHER, XDP_PASS);
		if (ipv4->ttl <= 1)
			return leave(TTL_EXPIRED, XDP_PASS);
		route.family = AF_INET;
		route.tos = ipv4->tos;
		route.l4_protocol = ipv4->protocol;
		route.tot_len = bpf_ntohs(ipv4->tot_len);
		route.ipv4_src = ipv4->saddr;
		route.ipv4_dst = ipv4->daddr;
	} else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		if ((void *)(ipv6 + 1) > end)
			return leave(OTHER, XDP_PASS);
		if (ipv6->hop_limit <= 1)
			return leave(TTL_EXPIRED, XDP_PASS);
		route.family = AF_INET6;
		route.flowinfo = *(__be32 *)ipv6 & bpf_htonl(0x0fffffff);
		route.l4_protocol = ipv6->nexthdr;
		route.tot_len = bpf_ntohs(ipv6->payload_len) + sizeof(*ipv6);
		__builtin_memcpy(route.ipv6_src, &ipv6->saddr, sizeof(route.ipv6_src));
		__builtin_memcpy(route.ipv6_dst, &ipv6->daddr, sizeof(route.ipv6_dst));
	} else {
		return leave(OTHER, XDP_PASS);
	}

	switch (bpf_fib_lookup(context, &route, sizeof(route), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		break;
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return leave(REFUSED, XDP_DROP);
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		return leave(NO_NEIGHBOUR, XDP_PASS);
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		return leave(TOO_BIG, XDP_PASS);
	default:
		return leave(NO_ROUTE, XDP_PASS);
	}

	if (route.family == AF_INET) {
		/* One less TTL is 0x0100 more checksum (RFC 1141). */
		sum = ipv4->check + (__u32)bpf_htons(0x0100);
		ipv4->check = sum + (sum >= 0xffff);
		ipv4->ttl--;
	} else {
		/* The bound checked above is forgotten over the call's spills on some verifiers. */
		if ((void *)(ipv6 + 1) > end)
			return leave(OTHER, XDP_PASS);
		ipv6->hop_limit--;
	}
	__builtin_memcpy(ethernet->h_dest, route.dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, route.smac, ETH_ALEN);
	count(FORWARDED);
	return bpf_redirect(route.ifindex, 0);
}

char _license[] SEC("license") = "Dual MIT/GPL";
