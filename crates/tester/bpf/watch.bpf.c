/*
 * What the polls of one interface cost, of a router in service.
 *
 * Whoever polls is a NAPI thread (its number) or a processor in its receiving softirq. From waking to sleeping is an
 * episode; the place of a poll in its episode says how warm it is. Sums stay in the kernel, for each poller and NAPI
 * instance; what belongs to no poll counts for the instance that was polled last. Of polls that are full, and of those
 * that follow a full one, user space gets a record each.
 *
 *      wake ──► poll (first) ──► poll ──► poll ──► sleep
 *               cold             warm              a run of full polls is the overload itself
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define FULL 64 /* packets of a full poll: the weight of every driver in the kernel since 2022 */
#define NET_RX 3
#define ON_PROCESSOR (1ULL << 32)
/* Between two softirqs of a run others had the processor for longer than this. */
#define GAP_NS 5000

#define relocated __attribute__((preserve_access_index))
struct ns_common { unsigned int inum; } relocated;
struct net { struct ns_common ns; } relocated;
typedef struct { struct net *net; } possible_net_t;
struct net_device { int ifindex; possible_net_t nd_net; } relocated;
struct napi_struct { struct net_device *dev; unsigned int napi_id; } relocated;
struct task_struct { int pid; } relocated;

/* The interface: its number, and its network namespace by inode. 0: the backlog of the processors. */
const volatile __u32 interface_index = 0;
const volatile __u32 namespace_inode = 0;
/* Whether no softirq polls it: then whoever polls is a thread. */
const volatile __u32 threads_alone = 0;

/* Mirrored by crates/tester/src/watch.rs. */
struct part {
	__u64 poller;
	__u32 napi_id, unused;
};

/* Mirrored by crates/tester/src/watch.rs. */
struct sums {
	__u64 episodes, episode_packets, episode_packets_squared, longest_run;
	__u64 polls, packets, full_polls, empty_polls;
	__u64 other_polls, other_packets;
	__u64 busy_ns, paused_ns;
	/* By packets of the poll: how many first and later polls, and their time. */
	__u64 first_polls[FULL + 1], first_ns[FULL + 1], later_polls[FULL + 1], later_ns[FULL + 1];
};

/* Mirrored by crates/tester/src/watch.rs. */
struct poll_record {
	__u64 at_ns, poller;
	__u32 lasts_ns, idle_ns;
	__u16 place, before, packets, is_end;
};

struct executor {
	__u64 last_ns, paused_from_ns, paused_ns, asleep_from_ns, idle_ns, packets;
	__u32 place, before, is_awake, is_preempted, napi_id, unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, struct executor);
} executors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct part);
	__type(value, struct sums);
} totals SEC(".maps");

/* Mirrored by crates/tester/src/watch.rs. */
struct own {
	__u64 ns, runs;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct own);
} own_time SEC(".maps");

/* What the sums of a part begin with: too large for a stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sums);
} nothing SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} records SEC(".maps");

static __always_inline struct sums *sums(__u64 poller, __u32 napi_id)
{
	struct part part = { .poller = poller, .napi_id = napi_id };

	return bpf_map_lookup_elem(&totals, &part);
}

static __always_inline void begin_sums(__u64 poller, __u32 napi_id)
{
	struct part part = { .poller = poller, .napi_id = napi_id };
	__u32 zero = 0;
	struct sums *empty = bpf_map_lookup_elem(&nothing, &zero);

	if (empty)
		bpf_map_update_elem(&totals, &part, empty, BPF_NOEXIST);
}

/* Adds the time since a program began to that of all of them. The kernel's own accounting would time each frame that
 * any XDP program of the machine sees. */
static __always_inline void own(__u64 began_ns)
{
	__u32 zero = 0;
	struct own *spent = bpf_map_lookup_elem(&own_time, &zero);

	if (!spent)
		return;
	spent->ns += bpf_ktime_get_ns() - began_ns;
	spent->runs += 1;
}

static __always_inline __u32 short_ns(__u64 ns)
{
	return ns > 0xffffffffULL ? 0xffffffff : ns;
}

static __always_inline void record(struct executor *executor, __u64 poller, __u64 now, __u64 lasts, __u64 packets,
				   int is_end)
{
	struct poll_record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);

	if (!record)
		return;
	record->at_ns = now;
	record->poller = poller;
	record->lasts_ns = short_ns(lasts);
	record->idle_ns = short_ns(executor->idle_ns);
	record->place = executor->place > 0xffff ? 0xffff : executor->place;
	record->before = executor->before;
	record->packets = packets;
	record->is_end = is_end;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static __always_inline void wake(struct executor *executor, __u64 now)
{
	executor->idle_ns = executor->asleep_from_ns ? now - executor->asleep_from_ns : 0;
	executor->last_ns = now;
	executor->paused_ns = 0;
	executor->packets = 0;
	executor->place = 0;
	executor->before = 0;
	executor->is_awake = 1;
	executor->is_preempted = 0;
}

static __always_inline void sleep(struct executor *executor, __u64 poller, __u64 now)
{
	struct sums *all = sums(poller, executor->napi_id);
	__u64 lasts;

	if (!all || !executor->is_awake)
		return;
	executor->is_awake = 0;
	executor->asleep_from_ns = now;
	if (!executor->place)
		return;
	lasts = now - executor->last_ns - executor->paused_ns;
	all->busy_ns += lasts;
	all->episodes += 1;
	all->episode_packets += executor->packets;
	all->episode_packets_squared += executor->packets * executor->packets;
	if (executor->packets > all->longest_run)
		all->longest_run = executor->packets;
	if (executor->before >= FULL)
		record(executor, poller, now, lasts, 0, 1);
}

static __always_inline int is_napi_thread(void)
{
	char name[16];

	bpf_get_current_comm(name, sizeof(name));
	return name[0] == 'n' && name[1] == 'a' && name[2] == 'p' && name[3] == 'i' && name[4] == '/';
}

static __always_inline void on_switch(__u64 now, _Bool is_preempted, struct task_struct *before,
				      struct task_struct *after, unsigned int state)
{
	__u64 key = before->pid;
	struct executor *executor = key ? bpf_map_lookup_elem(&executors, &key) : 0;

	if (executor && (is_preempted || state == 0)) {
		executor->paused_from_ns = now;
		executor->is_preempted = 1;
	} else if (executor) {
		sleep(executor, key, now);
	}
	key = after->pid;
	executor = key ? bpf_map_lookup_elem(&executors, &key) : 0;
	if (executor && executor->is_preempted && executor->is_awake) {
		struct sums *all = sums(key, executor->napi_id);

		executor->paused_ns += now - executor->paused_from_ns;
		if (all)
			all->paused_ns += now - executor->paused_from_ns;
		executor->is_preempted = 0;
	} else if (executor) {
		wake(executor, now);
	}
}

SEC("tp_btf/sched_switch")
int BPF_PROG(watch_switch, _Bool is_preempted, struct task_struct *before, struct task_struct *after, unsigned int state)
{
	__u64 now = bpf_ktime_get_ns();

	on_switch(now, is_preempted, before, after, state);
	own(now);
	return 0;
}

static __always_inline void on_softirq_entry(__u64 now)
{
	__u64 key = ON_PROCESSOR | bpf_get_smp_processor_id();
	struct executor *executor;

	if (is_napi_thread())
		return;
	executor = bpf_map_lookup_elem(&executors, &key);
	if (!executor)
		return;
	/* A softirq polls each instance once: after a full poll the run goes on in the next one. */
	if (executor->place && executor->before >= FULL && executor->asleep_from_ns) {
		__u64 gap = now - executor->asleep_from_ns;

		executor->is_awake = 1;
		if (gap > GAP_NS) {
			struct sums *all = sums(key, executor->napi_id);

			executor->paused_ns += gap;
			if (all)
				all->paused_ns += gap;
		}
	} else {
		wake(executor, now);
	}
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(watch_softirq_entry, unsigned int vector)
{
	__u64 now;

	if (vector != NET_RX)
		return 0;
	now = bpf_ktime_get_ns();
	on_softirq_entry(now);
	own(now);
	return 0;
}

static __always_inline void on_softirq_exit(__u64 now)
{
	__u64 key = ON_PROCESSOR | bpf_get_smp_processor_id();
	struct executor *executor;

	if (is_napi_thread())
		return;
	executor = bpf_map_lookup_elem(&executors, &key);
	if (!executor || !executor->is_awake)
		return;
	if (executor->place && executor->before >= FULL) {
		executor->is_awake = 0;
		executor->asleep_from_ns = now;
	} else {
		sleep(executor, key, now);
	}
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(watch_softirq_exit, unsigned int vector)
{
	__u64 now;

	if (vector != NET_RX)
		return 0;
	now = bpf_ktime_get_ns();
	on_softirq_exit(now);
	own(now);
	return 0;
}

static __always_inline int is_watched(struct napi_struct *napi)
{
	/* Pointers of a tracepoint with types are read as they are, at a fraction of what a helper takes. */
	struct net_device *device = napi->dev;
	struct net *net;

	if (!device)
		return interface_index == 0;
	if (!interface_index || device->ifindex != interface_index)
		return 0;
	net = device->nd_net.net;
	return net && net->ns.inum == namespace_inode;
}

static __always_inline void on_poll(__u64 now, struct napi_struct *napi, int work, int budget)
{
	__u64 packets = (__u32)work, lasts, key;
	int watched = is_watched(napi);
	struct executor *executor;
	struct sums *all;
	__u32 napi_id;

	key = threads_alone || is_napi_thread() ? (__u32)bpf_get_current_pid_tgid()
						: ON_PROCESSOR | bpf_get_smp_processor_id();
	executor = bpf_map_lookup_elem(&executors, &key);
	if (!executor) {
		struct executor fresh = {};

		if (watched)
			bpf_map_update_elem(&executors, &key, &fresh, BPF_ANY);
		return;
	}
	if (!executor->is_awake)
		return;
	if (!watched) {
		all = sums(key, executor->napi_id);
		if (all) {
			all->other_polls += 1;
			all->other_packets += packets;
		}
		return;
	}
	napi_id = napi->napi_id;
	executor->napi_id = napi_id;
	all = sums(key, napi_id);
	if (!all) {
		begin_sums(key, napi_id);
		all = sums(key, napi_id);
		if (!all)
			return;
	}
	/* The barrier keeps the compiler from forgetting the bound, which the verifier wants to see. */
	asm volatile("" : "+r"(packets));
	if (packets > FULL)
		packets = FULL;
	lasts = now - executor->last_ns - executor->paused_ns;
	all->busy_ns += lasts;
	all->polls += 1;
	all->packets += (__u32)work;
	if (work >= budget)
		all->full_polls += 1;
	if (!work)
		all->empty_polls += 1;
	if (!executor->place) {
		all->first_polls[packets] += 1;
		all->first_ns[packets] += lasts;
	} else {
		all->later_polls[packets] += 1;
		all->later_ns[packets] += lasts;
	}
	if (packets >= FULL || (executor->place && executor->before >= FULL))
		record(executor, key, now, lasts, packets, 0);
	executor->last_ns = now;
	executor->paused_ns = 0;
	executor->place += 1;
	executor->before = packets;
	executor->packets += (__u32)work;
}

SEC("tp_btf/napi_poll")
int BPF_PROG(watch_poll, struct napi_struct *napi, int work, int budget)
{
	__u64 now = bpf_ktime_get_ns();

	on_poll(now, napi, work, budget);
	own(now);
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
