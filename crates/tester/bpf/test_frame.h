/* What the programs share: the signature of a test frame, where it is found, settings from user space. */
#ifndef ROUTECAST_TEST_FRAME_H
#define ROUTECAST_TEST_FRAME_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define inline_ static __always_inline

/* First octets of a UDP payload: "RC", sequence, send time in ns, flow, trial, stream, packed in network order. */
#define MAGIC bpf_htons(0x5243)
#define SIGNATURE_BYTES 18
#define MAGIC_AT 0
#define SEQUENCE_AT 2
#define TIME_AT 6
#define FLOW_AT 14
#define TRIAL_AT 16
#define STREAM_AT 17

/* Ethernet, IP without options or extension headers, UDP. */
#define IPV4_HEADERS 42
#define IPV6_HEADERS 62
#define FCS_BYTES 4

#define MOST_STREAMS 16

/* Packet memory may be read unaligned, but clang reads packed fields octet by octet; so offsets and plain types. */
#define at8(pointer, offset) (*((__u8 *)(pointer) + (offset)))
#define at16(pointer, offset) (*(__u16 *)((void *)(pointer) + (offset)))
#define at32(pointer, offset) (*(__u32 *)((void *)(pointer) + (offset)))
#define at64(pointer, offset) (*(__u64 *)((void *)(pointer) + (offset)))

/* One's complement sum (RFC 1071): 16-bit words in the order of memory, so no octets need to be swapped. */
inline_ __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Octets of the headers of a frame that may be a test frame, 0 if it cannot be one. */
inline_ __u32 headers_of(void *data, void *end)
{
	if (data + IPV4_HEADERS + SIGNATURE_BYTES > end)
		return 0;
	if (at16(data, 12) == bpf_htons(ETH_P_IP)) {
		/* Version 4 without options, UDP, not a fragment. */
		if (at8(data, 14) != 0x45 || at8(data, 23) != IPPROTO_UDP || (at16(data, 20) & bpf_htons(0x3fff)))
			return 0;
		return IPV4_HEADERS;
	}
	if (at16(data, 12) == bpf_htons(ETH_P_IPV6)) {
		if (data + IPV6_HEADERS + SIGNATURE_BYTES > end)
			return 0;
		if (at8(data, 14) >> 4 != 6 || at8(data, 20) != IPPROTO_UDP)
			return 0;
		return IPV6_HEADERS;
	}
	return 0;
}

#define SERVICE_VLAN 0x88a8
#define VXLAN_PORT 4789
#define VXLAN_HAS_VNI 0x08
#define MOST_SHIFT 127

/* What stands around the datagram of a test, see src/frame/outer.rs. */
struct around {
	__u32 shift;  /* 14 octets before the datagram, the last two of which are its EtherType; 0: nothing is around */
	__u32 intact; /* whether lengths and checksum of a tunnel's headers are right */
};

/* Looks behind tags and tunnel headers of a frame that is not a plain test frame. */
inline_ struct around around(void *data, void *end)
{
	struct around found = {.shift = 0, .intact = 1};
	__u32 at = 0, behind, protocol;
	__u16 type;
	__u64 sum;
	void *ip, *next;

	if (data + ETH_HLEN + 8 + 2 > end)
		return found;
	type = at16(data, 12);
	if (type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(SERVICE_VLAN)) {
		at = 4;
		type = at16(data, 16);
		if (type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(SERVICE_VLAN)) {
			at = 8;
			type = at16(data, 20);
		}
	}
	ip = data + at + ETH_HLEN;
	found.shift = at;
	if (type == bpf_htons(ETH_P_IP)) {
		if (ip + 20 + 16 > end || at8(ip, 0) != 0x45 || (at16(ip, 6) & bpf_htons(0x3fff)))
			return found;
		protocol = at8(ip, 9);
		sum = (__u64)at32(ip, 0) + at32(ip, 4) + at32(ip, 8) + at32(ip, 12) + at32(ip, 16);
		found.intact = fold(sum) == 0xffff && bpf_ntohs(at16(ip, 2)) == (__u64)(end - ip);
		behind = at + ETH_HLEN + 20;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		if (ip + 40 + 16 > end || at8(ip, 0) >> 4 != 6)
			return found;
		protocol = at8(ip, 6);
		found.intact = (__u64)bpf_ntohs(at16(ip, 4)) + 40 == (__u64)(end - ip);
		behind = at + ETH_HLEN + 40;
	} else {
		return found;
	}
	next = data + behind;
	if (next + 16 > end)
		return found;
	if (protocol == IPPROTO_GRE && !at16(next, 0)) {
		found.shift = behind + 4 - ETH_HLEN;
	} else if (protocol == IPPROTO_UDP && at16(next, 2) == bpf_htons(VXLAN_PORT) && at8(next, 8) == VXLAN_HAS_VNI) {
		found.intact = found.intact && bpf_ntohs(at16(next, 4)) == (__u64)(end - next);
		found.shift = behind + 16;
	} else {
		found.intact = 1;
	}
	return found;
}

/* The signature of a test frame without tags and tunnel, NULL for any other frame. */
inline_ void *plain_signature_of(void *data, void *end)
{
	void *signature;

	switch (headers_of(data, end)) {
	case IPV4_HEADERS:
		signature = data + IPV4_HEADERS;
		break;
	case IPV6_HEADERS:
		signature = data + IPV6_HEADERS;
		break;
	default:
		return NULL;
	}
	if (signature + SIGNATURE_BYTES > end)
		return NULL;
	return at16(signature, MAGIC_AT) == MAGIC ? signature : NULL;
}

/* The signature of a test frame, NULL for any other frame. */
inline_ void *signature_of(void *data, void *end)
{
	void *signature = plain_signature_of(data, end);

	return signature ? signature : plain_signature_of(data + (around(data, end).shift & MOST_SHIFT), end);
}

/* What user space sets in a program of a device under test; mirrored in src/device.rs. */
struct settings {
	__u64 iterations;    /* rounds of fixed work per frame */
	__u64 delay_ns;      /* time spun per test frame */
	__u64 drop_every;    /* the n-th, 2n-th, ... test frame is dropped */
	__u64 corrupt_every; /* the same, one octet is changed */
	__u64 swallow;       /* all test frames are dropped */
	__u64 reflect;       /* test frames go back where they came from */
};

inline_ struct settings *settings_of(void *map)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(map, &zero);
}

/* Work that the compiler cannot shorten and that touches no memory. */
static long round_of_work(__u32 index, void *context)
{
	__u64 *value = context;

	*value = *value * 6364136223846793005ULL + 1442695040888963407ULL;
	return 0;
}

/* The value depends on all rounds; the caller stores it somewhere so that they are not optimised away. */
inline_ __u64 work(__u64 iterations)
{
	__u64 value = iterations;

	if (iterations)
		bpf_loop(iterations, round_of_work, &value, 0);
	return value;
}

#endif
