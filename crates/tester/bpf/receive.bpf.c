/* The sink: judges, counts and drops every test frame; hands everything else to the network stack.
 *
 * What belongs to one stream is one value per core, so that a frame costs four array lookups (which the kernel
 * inlines), one reading of the clock and no hash. Sequence numbers are kept in a bitmap, shared by all cores.
 */
#include "test_frame.h"

/* Mirrored in src/sink/layout.rs. */
#define STEP_BITS 6
#define STEPS (1 << STEP_BITS)
#define TOP_BITS 40
#define SLOTS ((TOP_BITS - STEP_BITS + 1) * STEPS)

/* Mirrored in src/parts.rs. */
#define PARTS_ROOM 2048
#define TICK_BITS 16

struct expected {
	__u32 frames;     /* 0: this stream is not expected here */
	__u32 first_word; /* of its bitmap */
	__u32 first_flow;
	__u32 flows;
};

struct expectation {
	__u32 trial;
	__u32 check_below; /* the pattern is read in frames whose number is scattered below this, in others believed */
	__u64 begin;       /* of the first part of the trial, ns */
	__u64 part_ticks;  /* length of a part, 2^-16 ns; 0: nothing is counted by parts */
	struct expected streams[MOST_STREAMS];
};

struct spans {
	__u64 count, sum, min, max;
	__u32 slots[SLOTS];
};

struct tally {
	__u64 frames, bytes, duplicated, reordered, corrupted;
	__u64 first, last, longest_gap, longest_gap_at;
	__u64 previous_latency;
	__u64 previous_sequence; /* plus one; 0: none yet */
	__u64 part_end;	 /* frames from then on are in another part */
	__u64 parted;	 /* frames that have been added to their part */
	__u64 part;
	struct spans latency, ipdv;
};

struct others {
	__u64 foreign, stale, misrouted;
};

struct flow {
	__u32 next; /* one more than the highest sequence number seen */
	__u32 received;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct expectation);
} expectation SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MOST_STREAMS);
	__type(key, __u32);
	__type(value, struct tally);
} tallies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct others);
} others SEC(".maps");

/* Sizes of both are set when the object is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} bitmap SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

/* Frames by part of the trial, of each stream. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MOST_STREAMS * PARTS_ROOM);
	__type(key, __u32);
	__type(value, __u64);
} parts SEC(".maps");

/* What the pattern of a frame with so many octets behind its signature adds to its checksum; filled by user space. */
#define MOST_PATTERN 16384
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MOST_PATTERN);
	__type(key, __u32);
	__type(value, __u64);
} pattern_sums SEC(".maps");

/* Whether several cores may receive at the same time. */
const volatile __u8 several = 1;

inline_ __u32 log2_of(__u64 value)
{
	__u32 bits = 0;

	if (value >> 32)
		bits += 32, value >>= 32;
	if (value >> 16)
		bits += 16, value >>= 16;
	if (value >> 8)
		bits += 8, value >>= 8;
	if (value >> 4)
		bits += 4, value >>= 4;
	if (value >> 2)
		bits += 2, value >>= 2;
	return bits + (value >> 1);
}

inline_ void record(struct spans *spans, __u64 span)
{
	__u64 slot = span;

	if (span >= 2 * STEPS) {
		__u32 shift = log2_of(span) - STEP_BITS;

		slot = shift * STEPS + (span >> shift);
		if (slot >= SLOTS)
			slot = SLOTS - 1;
	}
	spans->slots[slot]++;
	if (!spans->count || span < spans->min)
		spans->min = span;
	if (span > spans->max)
		spans->max = span;
	spans->count++;
	spans->sum += span;
}

/* A frame that is in another part of the trial than the one before it on this core: what was received since then is added
 * to that part. To all other frames, parts cost one comparison. */
inline_ void next_part(struct tally *tally, const struct expectation *expects, __u32 stream, __u64 now)
{
	__u32 key = stream * PARTS_ROOM + (tally->part & (PARTS_ROOM - 1));
	__u64 *frames = bpf_map_lookup_elem(&parts, &key), since, part;

	if (frames && several)
		__sync_fetch_and_add(frames, tally->frames - tally->parted);
	else if (frames)
		*frames += tally->frames - tally->parted;
	tally->parted = tally->frames;
	tally->part_end = ~0ULL;
	if (!expects->part_ticks)
		return;
	since = now > expects->begin ? now - expects->begin : 0;
	part = (since << TICK_BITS) / expects->part_ticks;
	if (part >= PARTS_ROOM - 1)
		part = PARTS_ROOM - 1;
	else
		tally->part_end = expects->begin +
				  (((part + 1) * expects->part_ticks + (1 << TICK_BITS) - 1) >> TICK_BITS);
	tally->part = part;
}

/* Sum of the octets behind the signature, at most 16383, by powers of two: the verifier knows the size of each piece. */
#define PIECE(octets)                                                                                      \
	if (length & (octets)) {                                                                           \
		__u8 *piece = start + (length & (0x3fff & ~(2 * (octets)-1)));                             \
		if ((void *)piece + (octets) > end)                                                        \
			return -1;                                                                         \
		sum = bpf_csum_diff(NULL, 0, (__be32 *)piece, (octets), sum);                              \
	}

inline_ __s64 sum_of(__u8 *start, __u32 length, void *end, __u32 sum)
{
	__u64 total;

	PIECE(8192)
	PIECE(4096)
	PIECE(2048)
	PIECE(1024)
	PIECE(512)
	PIECE(256)
	PIECE(128)
	PIECE(64)
	PIECE(32)
	PIECE(16)
	PIECE(8)
	PIECE(4)
	total = (__u32)sum;
	if (length & 2) {
		__u8 *piece = start + (length & 0x3ffc);

		if ((void *)piece + 2 > end)
			return -1;
		total += at16(piece, 0);
	}
	if (length & 1) {
		__u8 *piece = start + (length & 0x3ffe);

		if ((void *)piece + 1 > end)
			return -1;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		total += *piece;
#else
		total += (__u32)*piece << 8;
#endif
	}
	return total;
}

/* Whether lengths and checksums are right. Without `whole`, the octets behind the signature are not read, for that costs
 * more than everything else in a long frame; the checksum is then compared with what it must be. */
inline_ int intact(void *data, void *end, __u32 headers, int whole)
{
	__u32 datagram = end - data - ETH_HLEN, udp_length;
	__u64 sum;
	void *udp;
	__u32 behind;
	__u64 *known;
	__s64 rest;

	if (headers == IPV4_HEADERS) {
		void *ip = data + ETH_HLEN;

		if (data + IPV4_HEADERS + SIGNATURE_BYTES > end || bpf_ntohs(at16(ip, 2)) != datagram)
			return 0;
		sum = (__u64)at32(ip, 0) + at32(ip, 4) + at32(ip, 8) + at32(ip, 12) + at32(ip, 16);
		if (fold(sum) != 0xffff)
			return 0;
		udp = data + ETH_HLEN + 20;
		udp_length = datagram - 20;
		sum = (__u64)at32(ip, 12) + at32(ip, 16);
	} else {
		void *ip = data + ETH_HLEN;

		if (data + IPV6_HEADERS + SIGNATURE_BYTES > end || bpf_ntohs(at16(ip, 4)) + 40 != datagram)
			return 0;
		udp = data + ETH_HLEN + 40;
		udp_length = datagram - 40;
		sum = (__u64)at32(ip, 8) + at32(ip, 12) + at32(ip, 16) + at32(ip, 20) + at32(ip, 24) + at32(ip, 28) +
		      at32(ip, 32) + at32(ip, 36);
	}
	if (bpf_ntohs(at16(udp, 4)) != udp_length || !at16(udp, 6))
		return 0;
	if (udp + 8 + SIGNATURE_BYTES > end)
		return 0;
	sum += bpf_htons(IPPROTO_UDP) + bpf_htons(udp_length);
	sum += (__u64)at32(udp, 0) + at32(udp, 4) + at32(udp, 8) + at32(udp, 12) + at32(udp, 16) + at32(udp, 20) +
	       at16(udp, 24);
	behind = udp_length - 8 - SIGNATURE_BYTES;
	if (udp_length > 8 + SIGNATURE_BYTES) {
		if (whole) {
			rest = sum_of(udp + 8 + SIGNATURE_BYTES, behind, end, 0);
			if (rest < 0)
				return 0;
			sum += rest;
		} else {
			known = bpf_map_lookup_elem(&pattern_sums, &behind);
			if (!known)
				return 0;
			sum += *known;
		}
	}
	return fold(sum) == 0xffff;
}

inline_ int other(__u32 offset)
{
	__u32 zero = 0;
	struct others *others_here = bpf_map_lookup_elem(&others, &zero);

	if (others_here) {
		if (offset == 0)
			others_here->foreign++;
		else if (offset == 1)
			others_here->stale++;
		else
			others_here->misrouted++;
	}
	return offset == 0 ? XDP_PASS : XDP_DROP;
}

SEC("xdp") int receive(struct xdp_md *context)
{
	__u64 now = bpf_ktime_get_ns(), latency, word_before, bit;
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	__u32 headers = headers_of(data, end), zero = 0, sequence, word_key, flow_key, stream_key, flow_index;
	__u32 outer_intact = 1;
	struct expectation *expects;
	struct expected *stream;
	struct tally *tally;
	struct flow *flow;
	__u64 *word;
	void *signature = NULL, *frame = data;

	if (headers == IPV4_HEADERS)
		signature = data + IPV4_HEADERS;
	else if (headers == IPV6_HEADERS)
		signature = data + IPV6_HEADERS;
	if (!signature || signature + SIGNATURE_BYTES > end || at16(signature, MAGIC_AT) != MAGIC) {
		struct around found = around(data, end);

		frame = data + (found.shift & MOST_SHIFT);
		outer_intact = found.intact;
		headers = headers_of(frame, end);
		if (headers == IPV4_HEADERS)
			signature = frame + IPV4_HEADERS;
		else if (headers == IPV6_HEADERS)
			signature = frame + IPV6_HEADERS;
		else
			return other(0);
		if (signature + SIGNATURE_BYTES > end || at16(signature, MAGIC_AT) != MAGIC)
			return other(0);
	}

	expects = bpf_map_lookup_elem(&expectation, &zero);
	if (!expects)
		return XDP_ABORTED;
	if (at8(signature, TRIAL_AT) != expects->trial)
		return other(1);
	stream_key = at8(signature, STREAM_AT);
	if (stream_key >= MOST_STREAMS)
		return other(2);
	stream = &expects->streams[stream_key];
	if (!stream->frames)
		return other(2);
	tally = bpf_map_lookup_elem(&tallies, &stream_key);
	if (!tally)
		return XDP_ABORTED;

	sequence = bpf_ntohl(at32(signature, SEQUENCE_AT));
	flow_index = bpf_ntohs(at16(signature, FLOW_AT));
	if (sequence >= stream->frames || flow_index >= stream->flows ||
	    !outer_intact || !intact(frame, end, headers, (__u32)(sequence * 0x9e3779b1) < expects->check_below)) {
		tally->corrupted++;
		return XDP_DROP;
	}

	word_key = stream->first_word + (sequence >> 6);
	word = bpf_map_lookup_elem(&bitmap, &word_key);
	if (!word)
		return XDP_ABORTED;
	bit = 1ULL << (sequence & 63);
	if (several) {
		word_before = __sync_fetch_and_or(word, bit);
	} else {
		word_before = *word;
		*word = word_before | bit;
	}
	if (word_before & bit) {
		tally->duplicated++;
		return XDP_DROP;
	}

	/* Reordered (RFC 4737 sec. 3): a sequence number below the next one expected, within the flow. */
	flow_key = stream->first_flow + flow_index;
	flow = bpf_map_lookup_elem(&flows, &flow_key);
	if (!flow)
		return XDP_ABORTED;
	if (sequence < flow->next)
		tally->reordered++;
	else
		flow->next = sequence + 1;
	if (several)
		__sync_fetch_and_add(&flow->received, 1);
	else
		flow->received++;

	if (!tally->frames) {
		tally->first = now;
	} else if (now - tally->last > tally->longest_gap) {
		tally->longest_gap = now - tally->last;
		tally->longest_gap_at = tally->last;
	}
	tally->last = now;
	if (now >= tally->part_end)
		next_part(tally, expects, stream_key, now);
	tally->frames++;
	tally->bytes += end - data + FCS_BYTES;

	latency = now - bpf_be64_to_cpu(at64(signature, TIME_AT));
	/* Clocks of two machines may disagree. */
	if ((__s64)latency < 0)
		latency = 0;
	record(&tally->latency, latency);
	if (sequence && tally->previous_sequence == sequence)
		record(&tally->ipdv, latency > tally->previous_latency ? latency - tally->previous_latency
								       : tally->previous_latency - latency);
	/* One more than this one, so that zeroed memory means "none" but for frame 0, which has no predecessor. */
	tally->previous_sequence = (__u64)sequence + 1;
	tally->previous_latency = latency;
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
