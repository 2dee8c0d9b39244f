/* The generator: run once per frame by BPF_PROG_TEST_RUN with live frames, it waits until the frame is due, writes
 * headers, signature and checksums, and redirects the frame to its port.
 *
 * The whole frame head is written every time, because the kernel recycles the pages of sent frames as the device under
 * test left them. Several streams are merged by due time, so that one core sends both directions. User space maps the
 * memory of `generator`, watches `sent` and sets `stop`.
 */
#include "test_frame.h"

#define NEVER (~0ULL)
/* Ticks of 2^-16 ns: exact enough for 2^32 frames, and 64 bits last for 78 hours. */
#define TICK_BITS 16
#define WIRE_OVERHEAD 20
#define SPINS (1 << 23)
/* Lateness in ns, a power of two, that measures how fast it is made up for. */
#define ALL_GIVEN_UP (1ULL << 20)

#define HEAD_ROOM 160
#define MOST_OFFSET 127

/* Mirrored in src/live/layout.rs. */
struct stream {
	/* from user space */
	__u64 frames;        /* with the warm-up; 0: none */
	__u64 warmup;        /* frames of it */
	__u64 late_after;    /* ns after which a frame counts as late */
	__u64 hardly_late;   /* lateness in ns that is made up for at once */
	__u32 port;          /* index in `ports` and `generator.free` */
	__u32 number;        /* in the signature */
	__u32 first_segment; /* in `segments` */
	__u32 segments;
	__u32 first_slot; /* in `slots` */
	__u32 cycle;      /* slots of each table */
	__u32 first_flow; /* in `flows` */
	/* state; user space sets that of the first frame */
	__u32 segment;
	__u64 due;          /* ticks from the start; NEVER when all are sent */
	__u64 index;        /* of the next frame */
	__u64 next_segment; /* index of the first frame of the next segment */
	__u32 table;
	__u32 position;
	__u64 earliest; /* of the next frame, ns: what a stall held up leaves little faster than planned */
	/* results, of the counted frames */
	__u64 sent, first, last, late, latest;
};

struct generator {
	/* from user space */
	__u64 start; /* CLOCK_MONOTONIC, ns */
	__u64 end;   /* no frame leaves later */
	__u64 wire;  /* ticks of an octet on the link, times 2^16; 0: the link is as fast as we */
	__u32 streams;
	__u32 batch; /* frames that the kernel hands over together */
	__u32 trial;
	__u32 longest; /* octets of a frame as the kernel makes them, without FCS */
	/* both */
	__u32 stop;
	__u32 unfinished; /* streams with frames left */
	/* state */
	__u64 calls;
	__u64 sent;  /* with the warm-up */
	__u64 ended; /* when the last frame was handed over, or the end was reached */
	__u64 gone;  /* frames whose port does not exist any more */
	__u64 free[MOST_STREAMS]; /* when the link of each port is free, ticks from the start */
	struct stream stream[MOST_STREAMS];
};

/* A frame of a cyclic table, see src/plan.rs. */
struct slot {
	__u64 gap; /* to the next one, ticks */
	__u16 octets; /* with FCS */
	__u16 pattern_sum;
	__u16 flow; /* in the stream */
	__u16 spare;
};

/* Frames with the same table, from one change of the rate to the next, see src/plan.rs. */
struct segment {
	__u64 first_frame;
	__u64 first_due; /* ticks from the start */
	__u32 table;
	__u32 position;
};

/* Head of the frames of a flow; lengths, checksums and what changes in the signature are 0. */
struct flow {
	__u8 head[HEAD_ROOM];
	__u16 ipv4_sum;
	__u16 udp_sum;
	__u8 ipv6;
	__u8 datagram;   /* where it begins: 14 without tags and tunnel */
	__u8 head_bytes; /* with the signature */
	__u8 outer;      /* where the IP header of a tunnel begins; 0: there is none */
	__u16 outer_ipv4_sum;
	__u8 outer_ipv6;
	__u8 outer_udp;
	__u32 spare;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct generator);
} generator SEC(".maps");

/* Sizes of these three are set when the object is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct segment);
} segments SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, MOST_STREAMS);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct wait {
	__u64 due;
	__u64 now;
	struct generator *generator;
};

static long spin(__u32 index, void *context)
{
	struct wait *wait = context;

	wait->now = bpf_ktime_get_ns();
	return wait->now >= wait->due || *(volatile __u32 *)&wait->generator->stop;
}

/* Index of the stream whose frame is due first. */
inline_ __u32 next_stream(struct generator *generator)
{
	__u64 earliest = generator->stream[0].due;
	__u32 chosen = 0, index;

	if (generator->streams == 1)
		return 0;
	for (index = 1; index < MOST_STREAMS; index++) {
		if (index >= generator->streams)
			break;
		if (generator->stream[index].due < earliest) {
			earliest = generator->stream[index].due;
			chosen = index;
		}
	}
	return chosen;
}

/* Moves on to the next frame of a stream. Returns 0 if the tables are broken. */
inline_ int advance(struct generator *generator, struct stream *stream, __u64 gap)
{
	struct segment *segment;
	__u32 key;

	stream->index++;
	if (stream->index >= stream->frames) {
		stream->due = NEVER;
		generator->unfinished--;
		return 1;
	}
	stream->due += gap;
	stream->position = stream->position + 1 < stream->cycle ? stream->position + 1 : 0;
	if (stream->index < stream->next_segment)
		return 1;
	stream->segment++;
	key = stream->first_segment + stream->segment;
	segment = bpf_map_lookup_elem(&segments, &key);
	if (!segment)
		return 0;
	stream->due = segment->first_due;
	stream->table = segment->table;
	stream->position = segment->position;
	stream->next_segment = NEVER;
	if (stream->segment + 1 < stream->segments) {
		key++;
		segment = bpf_map_lookup_elem(&segments, &key);
		if (!segment)
			return 0;
		stream->next_segment = segment->first_frame;
	}
	return 1;
}

/* Least time to the next frame of a stream, ns: a stall of the tester must not become a burst at the device. Of a late
 * frame's gap a quarter is given up, and more the later it is: all of it at three quarters of a millisecond.
 */
inline_ __u64 pace_after_stall(struct generator *generator, struct stream *stream, __u64 gap, __u64 late, __u32 octets)
{
	__u64 wire = ((octets + FCS_BYTES + WIRE_OVERHEAD) * generator->wire) >> 16, least;

	if (late < stream->hardly_late)
		return 0;
	late += ALL_GIVEN_UP / 4;
	if (late > ALL_GIVEN_UP)
		late = ALL_GIVEN_UP;
	least = gap - (gap >> 10) * (late >> 10);
	return (least < wire ? wire : least) >> TICK_BITS;
}

/* Writes length and checksum of an IP header whose datagram has so many octets. */
inline_ int write_length(void *ip, void *end, __u32 ipv6, __u16 ipv4_sum, __u32 octets)
{
	if (ip + 20 > end)
		return 0;
	if (ipv6) {
		at16(ip, 4) = bpf_htons(octets - 40);
	} else {
		at16(ip, 2) = bpf_htons(octets);
		at16(ip, 10) = ~fold((__u64)ipv4_sum + bpf_htons(octets));
	}
	return 1;
}

/* Writes the head of a frame with tags or a tunnel, as `write_head` does for a plain one. */
inline_ int write_around(struct xdp_md *context, struct flow *flow, __u32 octets, __u32 pattern_sum, __u32 sequence,
			 __u32 mark, __u64 now)
{
	__u32 number = bpf_htonl(sequence), head = flow->head_bytes, at = flow->datagram, udp_length;
	__u64 time = bpf_cpu_to_be64(now), sum;
	__u16 checksum;
	void *data, *end, *udp, *signature;

	if (head > HEAD_ROOM || head < IPV4_HEADERS + SIGNATURE_BYTES || head > octets)
		return 0;
	if (bpf_xdp_store_bytes(context, 0, flow->head, head))
		return 0;
	data = (void *)(long)context->data;
	end = (void *)(long)context->data_end;
	if (flow->outer) {
		void *ip = data + (flow->outer & MOST_OFFSET);
		__u32 datagram = octets - flow->outer, headers = flow->outer_ipv6 ? 40 : 20;

		if (!write_length(ip, end, flow->outer_ipv6, flow->outer_ipv4_sum, datagram))
			return 0;
		if (flow->outer_udp) {
			if (ip + headers + 8 > end)
				return 0;
			at16(ip + headers, 4) = bpf_htons(datagram - headers);
		}
	}
	if (!write_length(data + (at & MOST_OFFSET), end, flow->ipv6, flow->ipv4_sum, octets - at))
		return 0;
	at += flow->ipv6 ? 40 : 20;
	udp = data + (at & 0xff);
	signature = udp + 8;
	if (signature + SIGNATURE_BYTES > end)
		return 0;
	udp_length = octets - at;
	at32(signature, SEQUENCE_AT) = number;
	at64(signature, TIME_AT) = time;
	at16(signature, TRIAL_AT) = mark;
	sum = (__u64)flow->udp_sum + 2 * (__u32)bpf_htons(udp_length) + pattern_sum + number + (__u32)time +
	      (time >> 32) + mark;
	checksum = ~fold(sum);
	at16(udp, 4) = bpf_htons(udp_length);
	at16(udp, 6) = checksum ? checksum : 0xffff;
	return 1;
}

/* Writes the head of a frame. Returns 0 if the frame is too short. */
inline_ int write_head(void *data, void *end, struct flow *flow, __u32 octets, __u32 pattern_sum, __u32 sequence,
		       __u32 mark, __u64 now)
{
	__u64 *from = (void *)flow->head, time = bpf_cpu_to_be64(now), sum;
	__u32 number = bpf_htonl(sequence), udp_length, copied;
	__u16 checksum;
	void *udp, *signature;

	if (flow->ipv6) {
		if (data + IPV6_HEADERS + SIGNATURE_BYTES > end)
			return 0;
#pragma clang loop unroll(full)
		for (copied = 0; copied < 80; copied += 8)
			at64(data, copied) = from[copied / 8];
		udp_length = octets - ETH_HLEN - 40;
		at16(data, 18) = bpf_htons(udp_length);
		udp = data + ETH_HLEN + 40;
	} else {
		if (data + IPV4_HEADERS + SIGNATURE_BYTES > end)
			return 0;
#pragma clang loop unroll(full)
		for (copied = 0; copied < 56; copied += 8)
			at64(data, copied) = from[copied / 8];
		at32(data, 56) = *(__u32 *)(flow->head + 56);
		udp_length = octets - ETH_HLEN - 20;
		at16(data, 16) = bpf_htons(udp_length + 20);
		at16(data, 24) = ~fold((__u64)flow->ipv4_sum + bpf_htons(udp_length + 20));
		udp = data + ETH_HLEN + 20;
	}
	signature = udp + 8;
	at32(signature, SEQUENCE_AT) = number;
	at64(signature, TIME_AT) = time;
	at16(signature, TRIAL_AT) = mark;
	sum = (__u64)flow->udp_sum + 2 * (__u32)bpf_htons(udp_length) + pattern_sum + number + (__u32)time +
	      (time >> 32) + mark;
	checksum = ~fold(sum);
	at16(udp, 4) = bpf_htons(udp_length);
	/* 0 means "no checksum" (RFC 768). */
	at16(udp, 6) = checksum ? checksum : 0xffff;
	return 1;
}

SEC("xdp") int generate(struct xdp_md *context)
{
	__u32 zero = 0, key, index, port, octets, pattern_sum, sequence, trial, mark;
	struct generator *work = bpf_map_lookup_elem(&generator, &zero);
	struct wait wait = {};
	struct stream *stream;
	struct slot *slot;
	struct flow *flow;
	void *data, *end;
	__u64 gap, late, leave, due;
	int is_first;

	if (!work || *(volatile __u32 *)&work->stop || !work->unfinished)
		return XDP_DROP;
	index = next_stream(work);
	if (index >= MOST_STREAMS)
		return XDP_DROP;
	stream = &work->stream[index];

	key = stream->first_slot + stream->table + stream->position;
	slot = bpf_map_lookup_elem(&slots, &key);
	if (!slot)
		return XDP_ABORTED;
	octets = slot->octets - FCS_BYTES;
	pattern_sum = slot->pattern_sum;
	gap = slot->gap;
	key = stream->first_flow + slot->flow;
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow)
		return XDP_ABORTED;

	if (octets != work->longest && bpf_xdp_adjust_tail(context, (int)octets - (int)work->longest))
		return XDP_ABORTED;

	if (!work->calls) {
		/* The call that starts us takes its time. */
		wait.now = bpf_ktime_get_ns();
		if (wait.now > work->start) {
			work->end += wait.now - work->start;
			work->start = wait.now;
		}
	}
	/* All frames of a batch leave when its last one is made, so only its first one waits. */
	leave = stream->due;
	if (work->wire) {
		port = stream->port;
		if (port >= MOST_STREAMS)
			return XDP_ABORTED;
		if (leave < work->free[port])
			leave = work->free[port];
		work->free[port] = leave + (((octets + FCS_BYTES + WIRE_OVERHEAD) * work->wire) >> 16);
	}
	due = work->start + (leave >> TICK_BITS);
	wait.due = due < stream->earliest ? stream->earliest : due;
	wait.generator = work;
	is_first = work->calls % work->batch == 0;
	if (is_first) {
		bpf_loop(SPINS, spin, &wait, 0);
		/* Gaps of more than a third of a second; a stop ends them. */
		if (wait.now < wait.due)
			bpf_loop(SPINS, spin, &wait, 0);
		if (wait.now < wait.due)
			bpf_loop(SPINS, spin, &wait, 0);
	} else {
		wait.now = bpf_ktime_get_ns();
	}
	work->calls++;
	if (*(volatile __u32 *)&work->stop)
		return XDP_DROP;
	if (wait.now > work->end) {
		work->ended = wait.now;
		work->stop = 1;
		return XDP_DROP;
	}

	sequence = stream->index - stream->warmup;
	trial = work->trial;
	if (stream->index < stream->warmup) {
		sequence = stream->index;
		trial |= 0x80;
	}
	data = (void *)(long)context->data;
	end = (void *)(long)context->data_end;
	mark = bpf_htons(trial << 8 | stream->number);
	if (flow->datagram == ETH_HLEN ? !write_head(data, end, flow, octets, pattern_sum, sequence, mark, wait.now)
				       : !write_around(context, flow, octets, pattern_sum, sequence, mark, wait.now))
		return XDP_ABORTED;

	/* A port leaves the table with its interface. What was sent must stay the first frames of the plan. */
	if (bpf_redirect_map(&ports, stream->port, XDP_DROP) != XDP_REDIRECT) {
		work->gone++;
		work->stop = 1;
		return XDP_DROP;
	}
	late = wait.now > due ? wait.now - due : 0;
	if (stream->index >= stream->warmup) {
		if (!stream->sent)
			stream->first = wait.now;
		stream->last = wait.now;
		stream->sent++;
		if (late > stream->late_after)
			stream->late++;
		if (late > stream->latest)
			stream->latest = late;
	}
	work->sent++;
	/* Frames of a batch leave together, so the next batch keeps the distance that they all add up to. */
	stream->earliest = (is_first ? wait.now : stream->earliest) + pace_after_stall(work, stream, gap, late, octets);
	if (!advance(work, stream, gap))
		work->stop = 1;
	if (!work->unfinished)
		work->ended = wait.now;
	return XDP_REDIRECT;
}

char _license[] SEC("license") = "Dual MIT/GPL";
