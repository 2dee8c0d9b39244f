/* The load balancer of a multistage router, and the failure detector of its back-end routers.
 *
 * `outside` sits on the interfaces to neighbours: it picks a back-end router (BR) for each frame and sends it there by
 * its destination MAC. `inside` sits on the interface to the BRs: it counts what each returns, finds the outside
 * interface of a frame by its destination MAC, and gives the frame that interface's MAC.
 *
 * Detector: no timer, no user space, no clock as long as BRs answer. docs/adr/0015-multistage.md says the rule.
 */
#include <linux/bpf.h>
#include <linux/icmpv6.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define inline_ static __always_inline

#define ROWS 65536
#define MEMBERS 64
#define CHOICES 8
#define MOST_PORTS 64
#define NOBODY 0xff
#define NEVER (~0ULL)

/* Mirrored by src/plane.rs. */
enum { HASH, ROUND_ROBIN, LOCAL };

struct settings {
	__u64 silence_ns;  /* T: how long a BR has to be silent while others return */
	__u64 alone_ns;    /* how long where no other returns */
	__u64 unanswered;  /* N: frames without an answer before the clock is looked at */
	__u64 probes;      /* own frames without an answer before a verdict */
	__u64 returns;     /* own frames answered before a revival */
	__u64 hold_ns;     /* least time dead; doubled by a death soon after a revival */
	__u64 verdicts;    /* most verdicts in a second */
	__u64 scheme;
	__u32 probe_source;      /* addresses of own frames, network order */
	__u32 probe_destination;
	__u32 inside_index;
	__u32 inside_mtu;        /* longest frame towards BRs, without Ethernet header */
	__u8 inside_mac[ETH_ALEN];
	__u8 has_probe6;         /* whether the two IPv6 addresses hold */
	__u8 has_other6;
	/* Source of own frames in IPv6, and those of the other load balancer (0: none), which must not leave either. */
	__u32 probe_source6[4];
	__u32 other_source6[4];
	__u32 other_source;
	__u32 pad;
};

struct member {
	__u8 mac[ETH_ALEN];
	__u8 is_member;
	/* It does not answer the own frames of the process that holds the router. Void without that process. */
	__u8 is_silent;
	__u64 idle_ns;       /* drain: rows without a frame for so long leave it */
	__u64 deadline_ns;   /* and at this time all do; 0: it does not drain */
};

struct port {
	__u8 mac[ETH_ALEN];
	__u8 local; /* member of the scheme "local" */
	__u8 number;
	__u32 index; /* of the interface; 0: nobody's place */
};

struct neighbour {
	__u32 index;
	__u8 mac[ETH_ALEN]; /* of the interface that it is behind */
	__u8 port;          /* its number */
	__u8 pad;
};

/* What the detector knows of a member; user space reads it. */
struct health {
	__u64 sent;       /* since the last return */
	__u64 returned;   /* ever */
	__u64 noted;      /* returned + 1 when the clock was looked at first */
	__u64 noted_ns;
	__u64 noted_others;
	__u64 probe_ns;   /* of the last own frame */
	__u64 probing;    /* own frames since the note */
	__u64 dead;
	__u64 dead_ns;
	__u64 alive_ns;   /* of the last revival */
	__u64 answers;    /* own frames answered since it is dead */
	__u64 answer_ns;
	__u64 hold_ns;
	__u64 deaths;
	__u64 revivals;
};

struct tally {
	__u64 frames, octets;
};

/* Own frames that took a path of a member: to any destination, of the protocol for experiments (RFC 3692). The low bits
 * of the IPv4 identification, or of the IPv6 flow label, say which path.
 */
#define IPPROTO_TRIAL 253
#define PATHS 64
struct paths {
	__u64 returned[PATHS];
};

enum { SENT, RETURNED, PROBES_SENT, PROBES_RETURNED, MEMBER_COUNTERS };
enum { IN, OUT, PORT_COUNTERS };
enum {
	NO_MEMBER, TO_KERNEL, UNKNOWN_NEIGHBOUR, MALFORMED, NO_ROOM, REROUTED, REASONS
};

struct budget {
	__u64 second;
	__u64 verdicts;
};

#define MAP(name_, type_, entries_, key_, value_) \
	struct { \
		__uint(type, type_); \
		__uint(max_entries, entries_); \
		__type(key, key_); \
		__type(value, value_); \
	} name_ SEC(".maps")

MAP(settings, BPF_MAP_TYPE_ARRAY, 1, __u32, struct settings);
/* Epoch, and in the lowest bit which half of `rows` holds. Written at once. */
MAP(version_of, BPF_MAP_TYPE_ARRAY, 1, __u32, __u64);
/* Of each row its choices in order, an octet each; two halves, one in use, one that is written. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * ROWS);
	__type(key, __u32);
	__type(value, __u64);
} rows SEC(".maps");
/* When a row of a member that drains last had a frame. */
MAP(seen, BPF_MAP_TYPE_ARRAY, ROWS, __u32, __u64);
MAP(members, BPF_MAP_TYPE_ARRAY, MEMBERS, __u32, struct member);
MAP(health_of, BPF_MAP_TYPE_ARRAY, MEMBERS, __u32, struct health);
MAP(paths_of, BPF_MAP_TYPE_ARRAY, MEMBERS, __u32, struct paths);
MAP(counters, BPF_MAP_TYPE_PERCPU_ARRAY, MEMBERS * MEMBER_COUNTERS, __u32, struct tally);
MAP(reasons, BPF_MAP_TYPE_PERCPU_ARRAY, (MOST_PORTS + 1) * REASONS, __u32, __u64);
/* What this load balancer is: one that works, one that stands by, one that hangs (a fault, on demand). */
enum role { WORKS, STANDS_BY, HANGS };
struct role_and_loss {
	__u64 role;
	__u64 loss; /* of arriving frames, this share of 2^32 is dropped: another fault */
};
MAP(role_of, BPF_MAP_TYPE_ARRAY, 1, __u32, struct role_and_loss);
/* Load balancers call each other, and answer, by frames of a type for local experiments (IEEE 802, table of EtherTypes):
 * on each interface, the number of answers that came. */
#define ETH_P_HELLO 0x88b5
enum { CALL = 1, ANSWER = 2 };
struct hello {
	struct ethhdr ethernet;
	__u8 kind;
} __attribute__((packed));
MAP(answers, BPF_MAP_TYPE_ARRAY, MOST_PORTS + 1, __u32, __u64);
MAP(port_counters, BPF_MAP_TYPE_PERCPU_ARRAY, MOST_PORTS * PORT_COUNTERS, __u32, struct tally);
/* By the interface's index, or one of the next places: an array, for a hash table costs a tenth of all the work. */
#define PLACES 256
#define NEXT_PLACES 4
MAP(ports, BPF_MAP_TYPE_ARRAY, PLACES, __u32, struct port);
MAP(neighbours, BPF_MAP_TYPE_HASH, 4096, __u64, struct neighbour);
/* The router's own addresses, IPv4 in the last four octets: the kernel of the load balancer answers for them. */
struct address {
	__u32 word[4];
};
MAP(own, BPF_MAP_TYPE_HASH, 256, struct address, __u32);
/* A bit for each value of 16 bits of an own address: nearly all frames need no look into the hash table. */
#define HINTS 1024
MAP(hints, BPF_MAP_TYPE_ARRAY, HINTS, __u32, __u64);
MAP(turns, BPF_MAP_TYPE_PERCPU_ARRAY, 1, __u32, __u32);
MAP(budget, BPF_MAP_TYPE_ARRAY, 1, __u32, struct budget);
/* Time of day of the process that holds the router; without it frames of neighbours look for dead BRs' return. */
MAP(heartbeat, BPF_MAP_TYPE_ARRAY, 1, __u32, __u64);

inline_ void *only(void *map)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(map, &zero);
}

inline_ void add(void *map, __u32 key, __u64 octets)
{
	struct tally *tally = bpf_map_lookup_elem(map, &key);

	if (tally) {
		tally->frames++;
		tally->octets += octets;
	}
}

inline_ void count(__u32 member, __u32 what, __u64 octets)
{
	add(&counters, member * MEMBER_COUNTERS + what, octets);
}

inline_ void count_port(__u32 port, __u32 what, __u64 octets)
{
	add(&port_counters, port * PORT_COUNTERS + what, octets);
}

inline_ struct port *port_of(__u32 index)
{
	struct port *port;
	__u32 place = index;

	for (int step = 0; step < NEXT_PLACES; step++, place++) {
		__u32 key = place % PLACES;

		port = bpf_map_lookup_elem(&ports, &key);
		if (port && port->index == index)
			return port;
	}
	return 0;
}

inline_ int are_equal(const __u8 *one, const __u8 *other)
{
	return *(__u32 *)one == *(__u32 *)other && *(__u16 *)(one + 4) == *(__u16 *)(other + 4);
}

/* Counts a frame by its interface (MOST_PORTS: that to the BRs) and by why it does not simply go on. */
inline_ int leave(__u32 port, __u32 reason, int action)
{
	__u32 key = port * REASONS + reason;
	__u64 *counter = bpf_map_lookup_elem(&reasons, &key);

	if (counter)
		(*counter)++;
	return action;
}

inline_ __u32 mixed(__u32 hash)
{
	hash ^= hash >> 16;
	hash *= 0x85ebca6b;
	hash ^= hash >> 13;
	hash *= 0xc2b2ae35;
	return hash ^ (hash >> 16);
}

inline_ int are_equal6(const __u32 *one, const __u32 *other)
{
	/* The last word first: it differs most. */
	return one[3] == other[3] && one[2] == other[2] && one[1] == other[1] && one[0] == other[0];
}

/* Whether a frame has the source of a load balancer's own frames: from outside it is a forgery. */
inline_ int is_of_a_balancer4(struct settings *set, struct iphdr *ip)
{
	return ip->saddr == set->probe_source || (ip->saddr == set->other_source && set->other_source);
}

inline_ int is_of_a_balancer6(struct settings *set, struct ipv6hdr *ip)
{
	return (are_equal6(ip->saddr.s6_addr32, set->probe_source6) && set->has_probe6) ||
	       (are_equal6(ip->saddr.s6_addr32, set->other_source6) && set->has_other6);
}

struct key {
	__u32 hash;  /* of the flow */
	__u32 words; /* octets of a frame behind its Ethernet header */
	int action;  /* XDP_REDIRECT: a BR's; otherwise what becomes of the frame */
	__u32 reason;
};

inline_ int is_own(const struct address *address)
{
	__u32 bits = (address->word[3] ^ address->word[3] >> 16) & 0xffff, key = bits / 64;
	__u64 *hint = bpf_map_lookup_elem(&hints, &key);

	return hint && *hint >> (bits % 64) & 1 && bpf_map_lookup_elem(&own, address) != 0;
}

/* The two ports of TCP, UDP, SCTP, or the octets that are there for other protocols: all zero. */
inline_ __u32 ports_at(void *at, void *end, __u8 protocol)
{
	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP && protocol != IPPROTO_SCTP)
		return 0;
	return at + 4 > end ? 0 : *(__u32 *)at;
}

inline_ struct key key_of_ipv4(struct settings *set, struct iphdr *ip, void *end)
{
	struct key key = {.action = XDP_PASS, .reason = TO_KERNEL};
	struct address to = {};
	__u32 header;

	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5 || is_of_a_balancer4(set, ip))
		return (struct key){.action = XDP_DROP, .reason = MALFORMED};
	to.word[3] = ip->daddr;
	if ((bpf_ntohl(ip->daddr) >> 28) == 14 || ip->daddr == 0xffffffff || is_own(&to))
		return key;
	key.hash = mixed(ip->saddr) ^ mixed(ip->daddr + 0x9e3779b9) ^ ip->protocol;
	/* Fragments carry no ports, the first one apart: all of a packet go by addresses and protocol. */
	if (!(ip->frag_off & bpf_htons(0x3fff))) {
		header = ip->ihl * 4;
		key.hash ^= mixed(ports_at((void *)ip + header, end, ip->protocol) + 0x7f4a7c15);
	}
	key.hash = mixed(key.hash);
	key.words = bpf_ntohs(ip->tot_len);
	key.action = XDP_REDIRECT;
	return key;
}

inline_ struct key key_of_ipv6(struct settings *set, struct ipv6hdr *ip, void *end)
{
	struct key key = {.action = XDP_PASS, .reason = TO_KERNEL};
	struct address to;
	__u8 protocol;
	void *at = ip + 1;
	__u32 addresses = 0;

	if (at > end || ip->version != 6 || is_of_a_balancer6(set, ip))
		return (struct key){.action = XDP_DROP, .reason = MALFORMED};
	__builtin_memcpy(&to, &ip->daddr, sizeof(to));
	/* Groups and addresses of the link: neighbour discovery among them. */
	if (ip->daddr.s6_addr[0] == 0xff || (ip->daddr.s6_addr[0] == 0xfe && (ip->daddr.s6_addr[1] & 0xc0) == 0x80) ||
	    is_own(&to))
		return key;
	for (int word = 0; word < 4; word++) {
		addresses = mixed(addresses ^ ip->saddr.s6_addr32[word]);
		addresses = mixed(addresses + ip->daddr.s6_addr32[word] + 0x9e3779b9);
	}
	protocol = ip->nexthdr;
	key.hash = addresses;
	/* Hop-by-hop, routing and destination options are stepped over; a fragment goes by its addresses. */
	for (int step = 0; step < 4; step++) {
		if (protocol != 0 && protocol != 43 && protocol != 60)
			break;
		if (at + 8 > end)
			break;
		protocol = *(__u8 *)at;
		at += 8 + 8 * (__u32) * (__u8 *)(at + 1);
	}
	if (protocol != 44)
		key.hash ^= mixed(ports_at(at, end, protocol) + 0x7f4a7c15) ^ protocol;
	key.hash = mixed(key.hash);
	key.words = bpf_ntohs(ip->payload_len) + sizeof(*ip);
	key.action = XDP_REDIRECT;
	return key;
}

struct sum {
	__u64 returned;
	__u32 without;
};

static long add_returned(__u32 number, void *context)
{
	struct health *health = bpf_map_lookup_elem(&health_of, &number);
	struct sum *sum = context;

	if (health && number != sum->without)
		sum->returned += health->returned;
	return 0;
}

/* What members other than this one have returned, ever. */
inline_ __u64 returned_by_others(__u32 number)
{
	struct sum sum = {.without = number};

	bpf_loop(MEMBERS, add_returned, &sum, 0);
	return sum.returned;
}

inline_ int may_decide(struct settings *set, __u64 now)
{
	struct budget *left = only(&budget);
	__u64 second = now / 1000000000ULL;

	if (!left)
		return 0;
	if (left->second != second) {
		left->second = second;
		left->verdicts = 0;
	}
	return __sync_fetch_and_add(&left->verdicts, 1) < set->verdicts;
}

enum { NOT_THERE, TAKES, TAKES_AND_PROBE };

/* Whether a frame may go to a member, and whether it goes as a frame of our own. This is the detector. */
inline_ int takes(struct settings *set, __u32 number, struct member *member, struct health *health)
{
	__u64 now = 0, silent, others, hold;
	__u64 *beat;
	int is_dead;

	if (!member->is_member)
		return NOT_THERE;
	if (health->dead || member->is_silent) {
		/* The process that holds the router looks whether it is back. If that ended, frames of neighbours do. */
		beat = only(&heartbeat);
		now = bpf_ktime_get_ns();
		if (beat && now - *beat < 1000000000ULL)
			return NOT_THERE;
	}
	if (health->dead) {
		if (now - health->probe_ns < 100000000ULL)
			return NOT_THERE;
		health->probe_ns = now;
		return TAKES_AND_PROBE;
	}
	if (health->sent < set->unanswered)
		return TAKES;
	now = bpf_ktime_get_ns();
	if (health->noted != health->returned + 1) {
		health->noted = health->returned + 1;
		health->noted_ns = now;
		health->noted_others = returned_by_others(number);
		health->probing = 0;
		health->probe_ns = 0;
	}
	silent = now - health->noted_ns;
	if (silent > set->silence_ns && health->probing >= set->probes) {
		others = returned_by_others(number) - health->noted_others;
		is_dead = others >= set->unanswered || silent > set->alone_ns;
		if (is_dead && may_decide(set, now) && __sync_val_compare_and_swap(&health->dead, 0, 1) == 0) {
			hold = set->hold_ns;
			/* Soon after a revival: it flaps, and stays away for twice as long as before, at most 64 times. */
			if (health->revivals && now - health->alive_ns < 10000000000ULL && health->hold_ns < 64 * hold)
				hold = 2 * health->hold_ns;
			health->hold_ns = hold;
			health->dead_ns = now;
			health->probe_ns = now;
			health->answers = 0;
			health->deaths++;
		}
		if (health->dead)
			return NOT_THERE;
	}
	if (now - health->probe_ns > set->silence_ns / 16) {
		health->probe_ns = now;
		health->probing++;
		return TAKES_AND_PROBE;
	}
	return TAKES;
}

/* A member has returned a frame; an own frame that comes back from a dead one is a step towards its revival. */
inline_ void returned(struct settings *set, struct health *health)
{
	__u64 now;

	__sync_fetch_and_add(&health->returned, 1);
	if (health->sent)
		health->sent = 0;
	if (!health->dead)
		return;
	now = bpf_ktime_get_ns();
	if (now - health->answer_ns > 1000000000ULL)
		health->answers = 0;
	health->answer_ns = now;
	health->answers++;
	if (health->answers >= set->returns && now - health->dead_ns >= health->hold_ns &&
	    __sync_val_compare_and_swap(&health->dead, 1, 0) == 1) {
		health->alive_ns = now;
		health->revivals++;
		health->noted = 0;
	}
}

inline_ __u16 checksum(struct iphdr *ip)
{
	__u16 *word = (__u16 *)ip;
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Wraps a frame so that a healthy BR sends it back here (IP in IP, RFC 2003); it goes on from here when it is back. */
inline_ int wrap(struct xdp_md *context, struct settings *set, const __u8 *mac, __u8 protocol)
{
	struct ethhdr *ethernet;
	struct iphdr *ip;
	void *data, *end;
	__u32 octets;

	if (bpf_xdp_adjust_head(context, -(int)sizeof(*ip)))
		return -1;
	data = (void *)(long)context->data;
	end = (void *)(long)context->data_end;
	ethernet = data;
	ip = data + sizeof(*ethernet);
	if ((void *)(ip + 1) > end)
		return -1;
	octets = end - data - sizeof(*ethernet);
	__builtin_memcpy(ethernet->h_dest, mac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, set->inside_mac, ETH_ALEN);
	ethernet->h_proto = bpf_htons(ETH_P_IP);
	__builtin_memset(ip, 0, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = bpf_htons(octets);
	ip->frag_off = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->protocol = protocol;
	ip->saddr = set->probe_source;
	ip->daddr = set->probe_destination;
	ip->check = checksum(ip);
	return 0;
}

/* Sends a frame back by where it came from. XDP_TX would do, but veth does not wake a peer without a program for it. */
inline_ int back(__u32 index)
{
	return bpf_redirect(index, 0);
}

enum { GOES_ON = -1, STANDS_ASIDE = -2 };

/* What a load balancer does with a frame for its role's sake, or because another one calls it. */
inline_ int by_role(void *data, void *end, __u32 index, __u32 interface)
{
	struct hello *hello = data;
	struct role_and_loss *is = only(&role_of);
	__u64 *heard;
	__u8 mac[ETH_ALEN];

	if (!is || is->role == HANGS)
		return XDP_DROP;
	if (is->loss && bpf_get_prandom_u32() < is->loss)
		return XDP_DROP;
	if ((void *)(hello + 1) <= end && hello->ethernet.h_proto == bpf_htons(ETH_P_HELLO)) {
		if (hello->kind == CALL && is->role == WORKS) {
			hello->kind = ANSWER;
			__builtin_memcpy(mac, hello->ethernet.h_source, ETH_ALEN);
			__builtin_memcpy(hello->ethernet.h_source, hello->ethernet.h_dest, ETH_ALEN);
			__builtin_memcpy(hello->ethernet.h_dest, mac, ETH_ALEN);
			return back(index);
		}
		heard = bpf_map_lookup_elem(&answers, &interface);
		if (hello->kind == ANSWER && heard)
			__sync_fetch_and_add(heard, 1);
		return XDP_DROP;
	}
	return is->role == WORKS ? GOES_ON : STANDS_ASIDE;
}

inline_ __u8 choice(__u64 choices, int place)
{
	return choices >> (8 * place);
}

SEC("xdp") int outside(struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	struct settings *set = only(&settings);
	__u64 *version = only(&version_of);
	__u32 ingress = context->ingress_ifindex, row, slot, other, *turn;
	struct port *port = port_of(ingress);
	struct ethhdr *ethernet = data;
	struct member *member = 0;
	struct health *health = 0;
	__u64 *choices, *before, *last, octets = end - data;
	__u8 mac[ETH_ALEN], protocol;
	struct key key;
	__u32 number = NOBODY, first;
	int verdict = NOT_THERE, action;

	if (!set || !version || !port || data + sizeof(*ethernet) > end)
		return XDP_PASS;
	action = by_role(data, end, ingress, port->number);
	if (action != GOES_ON)
		return action == STANDS_ASIDE ? XDP_DROP : action;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		key = key_of_ipv4(set, data + sizeof(*ethernet), end);
		protocol = IPPROTO_IPIP;
	} else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		key = key_of_ipv6(set, data + sizeof(*ethernet), end);
		protocol = IPPROTO_IPV6;
	} else {
		return leave(port->number, TO_KERNEL, XDP_PASS);
	}
	if (key.action != XDP_REDIRECT)
		return leave(port->number, key.reason, key.action);
	/* What is for somebody else's MAC is not for this router. */
	if (!are_equal(ethernet->h_dest, port->mac))
		return leave(port->number, TO_KERNEL, XDP_PASS);
	count_port(port->number, IN, octets);
	row = key.hash & (ROWS - 1);
	if (set->scheme == ROUND_ROBIN && (turn = only(&turns)))
		row = ((*turn)++ * 40503) & (ROWS - 1);
	slot = (*version & 1) * ROWS;
	other = row + (ROWS - slot);
	first = row + slot;
	choices = bpf_map_lookup_elem(&rows, &first);
	if (!choices)
		return leave(port->number, NO_MEMBER, XDP_DROP);

	if (set->scheme == LOCAL) {
		number = port->local;
		member = bpf_map_lookup_elem(&members, &number);
		health = bpf_map_lookup_elem(&health_of, &number);
		verdict = member && health ? takes(set, number, member, health) : NOT_THERE;
	} else {
		/* A member that drains keeps the rows that were its own while they have frames. */
		before = bpf_map_lookup_elem(&rows, &other);
		if (before && choice(*before, 0) != choice(*choices, 0)) {
			number = choice(*before, 0);
			member = bpf_map_lookup_elem(&members, &number);
			last = bpf_map_lookup_elem(&seen, &row);
			if (member && last && member->deadline_ns) {
				__u64 now = bpf_ktime_get_ns();
				health = bpf_map_lookup_elem(&health_of, &number);
				if (health && now < member->deadline_ns && now - *last < member->idle_ns) {
					*last = now;
					verdict = takes(set, number, member, health);
				}
			}
		}
	}
	for (int place = 0; place < CHOICES && verdict == NOT_THERE; place++) {
		number = choice(*choices, place);
		if (number == NOBODY)
			break;
		member = bpf_map_lookup_elem(&members, &number);
		health = bpf_map_lookup_elem(&health_of, &number);
		if (!member || !health)
			break;
		verdict = takes(set, number, member, health);
		if (verdict != NOT_THERE && place)
			leave(port->number, REROUTED, 0);
	}
	if (verdict == NOT_THERE || !member || !health)
		return leave(port->number, NO_MEMBER, XDP_DROP);
	__builtin_memcpy(mac, member->mac, ETH_ALEN);
	health->sent++;
	count(number, SENT, octets);
	if (verdict == TAKES_AND_PROBE && key.words + sizeof(struct iphdr) <= set->inside_mtu) {
		if (wrap(context, set, mac, protocol))
			return leave(port->number, NO_ROOM, XDP_DROP);
		count(number, PROBES_SENT, octets);
		return bpf_redirect(set->inside_index, 0);
	}
	__builtin_memcpy(ethernet->h_dest, mac, ETH_ALEN);
	return bpf_redirect(set->inside_index, 0);
}

/* An own frame is back: what it holds goes to the BR that has just shown that it forwards. */
inline_ int unwrap(struct xdp_md *context, struct settings *set, struct member *member, __u32 number, __u8 protocol,
		   __u64 octets)
{
	struct ethhdr *ethernet;
	void *data, *end;

	count(number, PROBES_RETURNED, octets);
	if (protocol != IPPROTO_IPIP && protocol != IPPROTO_IPV6)
		return XDP_DROP;
	if (bpf_xdp_adjust_head(context, sizeof(struct iphdr)))
		return leave(MOST_PORTS, NO_ROOM, XDP_DROP);
	data = (void *)(long)context->data;
	end = (void *)(long)context->data_end;
	ethernet = data;
	if (data + sizeof(*ethernet) > end)
		return XDP_DROP;
	__builtin_memcpy(ethernet->h_dest, member->mac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, set->inside_mac, ETH_ALEN);
	ethernet->h_proto = protocol == IPPROTO_IPIP ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	return back(set->inside_index);
}

/* A frame on a path is back: it is counted, and ends here. */
inline_ int end_path(struct settings *set, struct health *health, __u32 number, __u32 path, __u64 octets)
{
	struct paths *paths = bpf_map_lookup_elem(&paths_of, &number);

	returned(set, health);
	count(number, PROBES_RETURNED, octets);
	if (paths)
		__sync_fetch_and_add(&paths->returned[path % PATHS], 1);
	return XDP_DROP;
}

SEC("xdp") int inside(struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	struct settings *set = only(&settings);
	struct ethhdr *ethernet = data;
	struct iphdr *ip = data + sizeof(*ethernet);
	struct ipv6hdr *ip6 = data + sizeof(*ethernet);
	struct neighbour *neighbour;
	struct member *member;
	struct health *health;
	__u64 mac = 0, octets = end - data;
	__u32 number;
	int action;

	if (!set || data + sizeof(*ethernet) > end)
		return XDP_PASS;
	action = by_role(data, end, context->ingress_ifindex, MOST_PORTS);
	if (action >= 0)
		return action;
	/* A BR's MAC ends in its number; the table says whether it is one. */
	number = ethernet->h_source[5];
	member = bpf_map_lookup_elem(&members, &number);
	health = bpf_map_lookup_elem(&health_of, &number);
	if (!member || !health || !member->is_member)
		return leave(MOST_PORTS, TO_KERNEL, XDP_PASS);
	if (!are_equal(ethernet->h_source, member->mac))
		return leave(MOST_PORTS, TO_KERNEL, XDP_PASS);
	if (ethernet->h_dest[0] & 1)
		return leave(MOST_PORTS, TO_KERNEL, XDP_PASS);
	if (ethernet->h_proto != bpf_htons(ETH_P_IP) && ethernet->h_proto != bpf_htons(ETH_P_IPV6))
		return leave(MOST_PORTS, TO_KERNEL, XDP_PASS);
	if (ethernet->h_proto == bpf_htons(ETH_P_IP) && (void *)(ip + 1) <= end && is_of_a_balancer4(set, ip)) {
		/* Nobody but a load balancer sends these; those of the other one have no business here. */
		if (ip->saddr != set->probe_source)
			return XDP_DROP;
		if (ip->daddr == set->probe_destination) {
			returned(set, health);
			return unwrap(context, set, member, number, ip->protocol, octets);
		}
		if (ip->protocol != IPPROTO_TRIAL)
			return leave(MOST_PORTS, MALFORMED, XDP_DROP);
		return end_path(set, health, number, bpf_ntohs(ip->id), octets);
	}
	if (ethernet->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) <= end && is_of_a_balancer6(set, ip6)) {
		if (!set->has_probe6 || !are_equal6(ip6->saddr.s6_addr32, set->probe_source6))
			return XDP_DROP;
		if (ip6->nexthdr != IPPROTO_TRIAL)
			return leave(MOST_PORTS, MALFORMED, XDP_DROP);
		return end_path(set, health, number, ip6->flow_lbl[2], octets);
	}
	if (action == STANDS_ASIDE)
		return XDP_DROP;
	__builtin_memcpy(&mac, ethernet->h_dest, ETH_ALEN);
	neighbour = bpf_map_lookup_elem(&neighbours, &mac);
	if (!neighbour)
		return leave(MOST_PORTS, UNKNOWN_NEIGHBOUR, XDP_PASS);
	returned(set, health);
	count(number, RETURNED, octets);
	count_port(neighbour->port, OUT, octets);
	__builtin_memcpy(ethernet->h_source, neighbour->mac, ETH_ALEN);
	return bpf_redirect(neighbour->index, 0);
}

char _license[] SEC("license") = "Dual MIT/GPL";
