/* Forwarding by the kernel's FIB in XDP, as routers and back-end routers of a multistage router do it. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2
#define AF_INET6 10

enum { FORWARDED, NO_ROUTE, NO_NEIGHBOUR, TOO_BIG, TTL_EXPIRED, REFUSED, OTHER, OUTCOMES };

static __always_inline int settled(__u32 *what, __u32 outcome, int action)
{
	*what = outcome;
	return action;
}

#define SERVICE_VLAN 0x88a8

/* What the kernel's FIB says becomes of a frame; `what` is the reason. What it does not decide the kernel gets. At most
 * two VLAN tags stay as they are: the same networks have them on all ports.
 */
static __always_inline int by_fib(struct xdp_md *context, __u32 *what)
{
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	struct bpf_fib_lookup route = {};
	struct ethhdr *ethernet = data;
	struct ipv6hdr *ipv6;
	struct iphdr *ipv4;
	__be16 type;
	__u32 sum, tags = 0;

	*what = OTHER;
	if (data + sizeof(*ethernet) + sizeof(*ipv4) > end)
		return XDP_PASS;
	type = ethernet->h_proto;
	if (type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(SERVICE_VLAN)) {
		tags = 4;
		type = *(__be16 *)(data + 16);
		if (type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(SERVICE_VLAN)) {
			tags = 8;
			type = *(__be16 *)(data + 20);
		}
	}
	ipv4 = data + sizeof(*ethernet) + tags;
	ipv6 = data + sizeof(*ethernet) + tags;
	if ((void *)(ipv4 + 1) > end)
		return XDP_PASS;
	route.ifindex = context->ingress_ifindex;
	if (type == bpf_htons(ETH_P_IP)) {
		if (ipv4->ihl != 5)
			return XDP_PASS;
		if (ipv4->ttl <= 1)
			return settled(what, TTL_EXPIRED, XDP_PASS);
		route.family = AF_INET;
		route.tos = ipv4->tos;
		route.l4_protocol = ipv4->protocol;
		route.tot_len = bpf_ntohs(ipv4->tot_len);
		route.ipv4_src = ipv4->saddr;
		route.ipv4_dst = ipv4->daddr;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		if ((void *)(ipv6 + 1) > end)
			return XDP_PASS;
		if (ipv6->hop_limit <= 1)
			return settled(what, TTL_EXPIRED, XDP_PASS);
		route.family = AF_INET6;
		route.flowinfo = *(__be32 *)ipv6 & bpf_htonl(0x0fffffff);
		route.l4_protocol = ipv6->nexthdr;
		route.tot_len = bpf_ntohs(ipv6->payload_len) + sizeof(*ipv6);
		__builtin_memcpy(route.ipv6_src, &ipv6->saddr, sizeof(route.ipv6_src));
		__builtin_memcpy(route.ipv6_dst, &ipv6->daddr, sizeof(route.ipv6_dst));
	} else {
		return XDP_PASS;
	}

	switch (bpf_fib_lookup(context, &route, sizeof(route), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		break;
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return settled(what, REFUSED, XDP_DROP);
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		return settled(what, NO_NEIGHBOUR, XDP_PASS);
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		return settled(what, TOO_BIG, XDP_PASS);
	default:
		return settled(what, NO_ROUTE, XDP_PASS);
	}

	if (route.family == AF_INET) {
		/* One less TTL is 0x0100 more checksum (RFC 1141). */
		sum = ipv4->check + (__u32)bpf_htons(0x0100);
		ipv4->check = sum + (sum >= 0xffff);
		ipv4->ttl--;
	} else {
		/* The bound checked above is forgotten over the call's spills on some verifiers. */
		if ((void *)(ipv6 + 1) > end)
			return XDP_PASS;
		ipv6->hop_limit--;
	}
	__builtin_memcpy(ethernet->h_dest, route.dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, route.smac, ETH_ALEN);
	return settled(what, FORWARDED, bpf_redirect(route.ifindex, 0));
}
