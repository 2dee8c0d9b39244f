// The limit: for each workload the fastest program that we know how to write for that workload alone. It is no
// simulator; nothing in it can be set. Every frame is followed, and its latency goes into a sum and a histogram.
//
//   limit WORKLOAD FRAMES WARMUP_US SEED   prints one line of JSON
//
// There is no event list. Where a queue is first in, first out, a frame leaves at max(arrival, departure before) +
// service, and it is lost if the frame that would have to make room has not left by its arrival. Random numbers are
// drawn four at a time (xoshiro256++ in vectors), in blocks that stay in the cache. Times are integer picoseconds: a
// sum and a maximum of integers take two cycles, of floating-point numbers eight. Needs gcc for its vectors.
#define _POSIX_C_SOURCE 199309L
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));
typedef int64_t i64x4 __attribute__((vector_size(32)));
typedef uint64_t u64x4 __attribute__((vector_size(32)));
typedef double f64x4 __attribute__((vector_size(32)));

enum { kBlock = 2048, kBucketBits = 7, kBuckets = 64 << kBucketBits };

static const double kUs = 1e6;
static const int64_t kNever = INT64_MAX / 8;

static int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// Chooses without a branch where nothing can be predicted; the mask is all ones for a, or 0.
static int64_t Either(int64_t mask, int64_t a, int64_t b) { return b ^ ((a ^ b) & mask); }

// The mask of a condition, which the compiler cannot turn back into a branch.
static int64_t Mask(int condition) {
  int64_t mask = -(int64_t)condition;
  __asm__("" : "+r"(mask));
  return mask;
}

static double CpuSeconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

// Four generators xoshiro256++ side by side, seeded by splitmix64.
typedef struct {
  u64x4 s[4];
} Random;

static Random Seeded(uint64_t seed) {
  Random random;
  uint64_t state = seed * 0xD1342543DE82EF95;
  for (int word = 0; word < 4; word++) {
    for (int lane = 0; lane < 4; lane++) {
      uint64_t z = state += 0x9E3779B97F4A7C15;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
      random.s[word][lane] = z ^ (z >> 31);
    }
  }
  return random;
}

static inline u64x4 Rotated(u64x4 x, int by) { return (x << by) | (x >> (64 - by)); }

static inline u64x4 Draw(Random* random) {
  u64x4* s = random->s;
  const u64x4 result = Rotated(s[0] + s[3], 23) + s[0];
  const u64x4 t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = Rotated(s[3], 45);
  return result;
}

// Fills a block with exponential times, -mean * log(u) for u in (0, 1], rounded to picoseconds.
static void Exponentials(Random* random, double mean_us, int64_t* out) {
  const double mean = mean_us * kUs, log_2 = 0.69314718055994530942, magic = 6755399441055744.0;
  Random local = *random;
  for (int i = 0; i < kBlock; i += 4) {
    const f64x4 u = 2.0 - (f64x4)((Draw(&local) >> 12) | 0x3FF0000000000000);
    // u = 2^exponent * (1 + t), 1 + t in [sqrt(1/2), sqrt(2)); a polynomial gives log(1 + t) to 1e-8.
    const i64x4 exponent_bits = ((i64x4)u - 0x3FE6A09E667F3BCD) & ~0xFFFFFFFFFFFFF;
    const f64x4 t = (f64x4)((i64x4)u - exponent_bits) - 1.0, t2 = t * t, t4 = t2 * t2;
    const f64x4 low = 0.999999974131 - 0.499999963821 * t + t2 * (0.333341932861 - 0.250013521854 * t);
    const f64x4 high = 0.199559333583 - 0.165779928993 * t + t2 * (0.149774012842 - 0.142692581892 * t);
    const f64x4 log = t * (low + t4 * (high + t4 * 0.0853331304987));
    // Minus the exponent is a whole number from 0 to 52: into the mantissa of 2^52 and out again.
    const f64x4 halvings = (f64x4)((u64x4)(-exponent_bits) >> 52 | 0x4330000000000000) - 4503599627370496.0;
    const i64x4 rounded = (i64x4)(mean * (halvings * log_2 - log) + magic) - 0x4338000000000000;
    memcpy(out + i, &rounded, sizeof rounded);
  }
  *random = local;
}

// What is counted between the end of the warm-up and the last arrival; latencies of all frames that came then.
static struct {
  int64_t warmup_ps, last_ps;
  uint64_t arrived, dropped, left, latencies;
  int64_t latency_sum_ps;
  // Four histograms, since a counter that is wanted again at once makes the next frame wait. Bucket 0 is for frames
  // that do not count.
  uint32_t histogram[4][kBuckets];
} tally;

// Records the latencies of a block, but not those of frames that came during the warm-up; the arrays have four places
// more than frames.
static void Record(const int64_t* born, const int64_t* first_out, int frames) {
  const int64_t warmup = tally.warmup_ps;
  const i64x4 lanes = {0, 1, 2, 3};
  i64x4 sum = {0}, number = {0};
  for (int i = 0; i < frames; i += 4) {
    i64x4 from, to;
    memcpy(&from, born + i, sizeof from);
    memcpy(&to, first_out + i, sizeof to);
    const i64x4 counts = (from >= warmup) & (lanes < (int64_t)(frames - i));
    const i64x4 latency = (to - from) & counts;
    sum += latency;
    number -= counts;
    const f64x4 real = (f64x4)((u64x4)latency | 0x4330000000000000) - 4503599627370496.0;
    const u64x4 bits = (u64x4)(real + 2.0) >> (52 - kBucketBits);
    const u64x4 bucket = (bits - (1023 << kBucketBits)) & (u64x4)counts;
    for (int lane = 0; lane < 4; lane++) tally.histogram[lane][bucket[lane]]++;
  }
  for (int lane = 0; lane < 4; lane++) {
    tally.latency_sum_ps += sum[lane];
    tally.latencies += (uint64_t)number[lane];
  }
}

// W1: nothing is random, and flow f goes to core f mod 4, so that each core gets 25 frames in a round of 50 gaps, at
// the same instants of each round. The four cores are the four parts of a vector; what is kept of a core is the work
// ahead of its next frame, which is lost if that is more than a full queue. Runs whole rounds; the warm-up ends with
// one.
__attribute__((noinline)) static uint64_t W1(uint64_t frames) {
  enum { kGap = 416667, kService = 1000000, kQueue = 512, kRound = 50 * kGap, kRows = 25 };
  const uint64_t rounds = (frames + 99) / 100, warm = (uint64_t)((tally.warmup_ps + kRound - 1) / kRound);
  i32x4 arrivals[kRows + 1], gaps[kRows];
  int rows[4] = {0};
  int last = 0;
  for (int gap = 0; gap < 50; gap++) {
    for (int port = 0; port < 2; port++) {
      const int core = (gap + 50 * port) % 4;
      last = gap * kGap + port * (kGap / 2);
      arrivals[rows[core]++][core] = last;
    }
  }
  arrivals[kRows] = arrivals[0] + kRound;
  for (int row = 0; row < kRows; row++) gaps[row] = arrivals[row + 1] - arrivals[row];
  const i32x4 service = {kService, kService, kService, kService};
  i32x4 ahead = {0};
  i64x4 sum = {0};
  uint64_t inside = 0;
  for (uint64_t round = 0; round < rounds; round++) {
    if (round == warm) {
      for (int core = 0; core < 4; core++) inside += (uint64_t)((Max(ahead[core], 0) + kService - 1) / kService);
      tally.dropped = tally.latencies = 0;
      sum = (i64x4){0};
      memset(tally.histogram, 0, sizeof tally.histogram);
    }
    i32x4 entered = {0};
    for (int row = 0; row < kRows; row++) {
      const i32x4 enters = ahead <= kQueue * kService;
      const i32x4 wait = ahead & (ahead > 0);
      const i32x4 latency = (wait + service) & enters;
      ahead = wait + ((service & enters) - gaps[row]);
      entered -= enters;
      sum += __builtin_convertvector(latency, i64x4);
      const u32x4 bits = (u32x4)__builtin_convertvector(latency + 1, f32x4) >> (23 - kBucketBits);
      const u32x4 bucket = (bits - (127 << kBucketBits)) & (u32x4)enters;
      for (int core = 0; core < 4; core++) tally.histogram[core][bucket[core]]++;
    }
    const uint64_t number = (uint64_t)(entered[0] + entered[1] + entered[2] + entered[3]);
    tally.latencies += number;
    tally.dropped += 100 - number;
  }
  tally.arrived = 100 * (rounds - warm);
  tally.last_ps = (int64_t)(rounds - 1) * kRound + last;
  tally.warmup_ps = (int64_t)warm * kRound;
  tally.left = tally.latencies + inside;
  for (int core = 0; core < 4; core++) {
    const int64_t left_to_do = ahead[core] + arrivals[kRows][core] - last;
    tally.left -= (uint64_t)((Max(left_to_do, 0) + kService - 1) / kService);
    tally.latency_sum_ps += sum[core];
  }
  return 100 * rounds;
}

// W2: a frame is lost if the fiftieth before it, of those that got in, is still there. Arrivals count from the first
// block after the warm-up on. Of the frames before the last block, those that outlast the last arrival count as gone:
// at most fifty.
__attribute__((noinline)) static uint64_t W2(uint64_t frames, uint64_t seed) {
  enum { kRoom = 50 };
  static int64_t gap[kBlock], service[kBlock], born[kBlock + 4], leaves[kRoom + kBlock + 4];
  Random random = Seeded(seed);
  int64_t now = 0;
  for (uint64_t done = 0; done < frames; done += kBlock) {
    Exponentials(&random, 1.0 / 0.9, gap);
    Exponentials(&random, 1.0, service);
    const int number = frames - done < kBlock ? (int)(frames - done) : kBlock;
    const int64_t before = now;
    int64_t last = leaves[kRoom - 1];
    int entered = 0;
    for (int i = 0; i < number; i++) {
      now += gap[i];
      if (leaves[entered] > now) continue;
      last = Max(last, now) + service[i];
      born[entered] = now;
      leaves[kRoom + entered++] = last;
    }
    if (before >= tally.warmup_ps) {
      tally.arrived += (uint64_t)number;
      tally.dropped += (uint64_t)(number - entered);
    }
    Record(born, leaves + kRoom, entered);
    tally.last_ps = done + kBlock < frames ? kNever : now;
    for (int i = kRoom; i < kRoom + entered; i++) {
      tally.left += (uint64_t)(leaves[i] >= tally.warmup_ps) & (uint64_t)(leaves[i] <= tally.last_ps);
    }
    memmove(leaves, leaves + entered, kRoom * sizeof *leaves);
  }
  return frames;
}

// W3: the receiving NIC and the sending one are recursions of their own. The bus serves what comes from the NIC and
// from the cores in order of arrival; a frame that leaves it the first time is given to the core that is free first,
// which says at once when it comes back. Each core's frames come back in order, so the next one at the bus is the least
// of five. Its key is the instant, times four, plus the core's number.
__attribute__((noinline)) static uint64_t W3(uint64_t frames, uint64_t seed) {
  enum { kRing = 1 << 12 };
  typedef struct {
    int64_t ready, came;
  } Frame;
  static int64_t gap[kBlock], in[kBlock], bus_work[kBlock], core_work[kBlock], out[kBlock];
  static int64_t came[kBlock], received[kBlock], born[kBlock + 4], passed[kBlock + 4];
  static Frame core_frames[4][kRing];
  Random random = Seeded(seed);
  uint32_t head[4] = {0}, tail[4] = {0};
  int64_t next[4], free_at[4];
  const int64_t never = kNever * 4;
  for (int core = 0; core < 4; core++) {
    next[core] = never;
    free_at[core] = core;
  }
  int64_t back = never;
  int64_t now = 0, nic = 0, bus = 0, sender = 0;
  uint64_t drawn = 0, done = 0, sent = 0;
  uint32_t at_nic = kBlock, at_bus = kBlock, at_core = kBlock, at_out = 0;
  while (done < frames) {
    if (at_nic == kBlock) {
      Exponentials(&random, 1.0 / 3.2, gap);
      Exponentials(&random, 0.15, in);
      for (int i = 0; i < kBlock; i++, drawn++) {
        now += gap[i];
        nic = Max(nic, now) + in[i];
        came[i] = now;
        received[i] = drawn < frames ? nic * 4 : never;
        tally.arrived += (uint64_t)(drawn < frames) & (uint64_t)(now >= tally.warmup_ps);
        if (drawn + 1 == frames) tally.last_ps = now;
      }
      at_nic = 0;
    }
    if (at_core == kBlock) {
      Exponentials(&random, 1.0, core_work);
      at_core = 0;
    }
    if (at_bus == kBlock) {
      Exponentials(&random, 0.1, bus_work);
      at_bus = 0;
    }
    for (int core = 0; core < 4; core++) {
      if (tail[core] - head[core] >= kRing - kBlock) {
        fprintf(stderr, "W3: %d frames wait at a core\n", kRing - kBlock);
        exit(3);
      }
    }
    const int64_t used = Max(Max(at_nic, at_bus), Max(at_core, at_out));
    const int64_t steps = Min((int64_t)(frames - done), kBlock - used);
    for (int64_t step = 0; step < steps; step++) {
      const int64_t arrives = received[at_nic];
      if (arrives <= back) {
        bus = Max(arrives >> 2, bus) + bus_work[at_bus++];
        const int64_t free = Min(Min(free_at[0], free_at[1]), Min(free_at[2], free_at[3]));
        const uint32_t core = free & 3;
        const int64_t ready = (Max(bus, free >> 2) + core_work[at_core++]) * 4 + core;
        free_at[core] = ready;
        next[core] = Min(next[core], ready);
        back = Min(back, ready);
        Frame* place = &core_frames[core][tail[core]++ % kRing];
        place->ready = ready;
        place->came = came[at_nic++];
        core_frames[core][tail[core] % kRing].ready = never;
      } else {
        bus = Max(back >> 2, bus) + bus_work[at_bus++];
        const uint32_t core = back & 3;
        passed[at_out] = bus;
        born[at_out++] = core_frames[core][head[core]++ % kRing].came;
        next[core] = core_frames[core][head[core] % kRing].ready;
        back = Min(Min(next[0], next[1]), Min(next[2], next[3]));
      }
    }
    done = sent + at_out;
    if (at_out == kBlock || done == frames) {
      sent = done;
      Exponentials(&random, 0.15, out);
      for (uint32_t i = 0; i < at_out; i++) {
        sender = Max(sender, passed[i]) + out[i];
        passed[i] = sender;
        tally.left += (uint64_t)(sender >= tally.warmup_ps) & (uint64_t)(sender <= tally.last_ps);
      }
      Record(born, passed, (int)at_out);
      at_out = 0;
    }
  }
  return frames;
}

// NAPI: a frame that came by the time of its core's last poll is in that poll, any other opens a poll of its own, an
// interrupt after it came and the core is done. After a full poll the core polls at once. A ring is full if the frame
// 512 before waits for its poll. What comes in by one port is half of the router: two cores, whose frames leave by the
// other port. The halves run one after the other, for the time in which so many frames are due.
typedef struct {
  int64_t arrival, cost, wire;
} Coming;

typedef struct {
  int64_t departure, born, wire;
} Going;

typedef struct {
  int64_t poll, done;
  uint32_t in_poll, came, ready;
  uint64_t entered;
  int64_t polls[512];
  Coming coming[kBlock + 1];
  // Frames that wait for their turn at the outgoing link, and what ends them.
  Going going[2 * kBlock + 1];
} NapiCore;

typedef struct {
  int64_t now, last_in, link;
  uint64_t sent;
  int64_t starts[512];
  NapiCore cores[2];
} NapiHalf;

// Draws the frames of a block and gives them to their cores; returns their number.
static uint32_t Receive(NapiHalf* half, Random* random) {
  enum { kWirePs = 200, kPreamble = 20, kPerFrame = 500000, kPerByte = 300 };
  static int64_t gap[kBlock];
  static u64x4 draws[kBlock / 4];
  Coming kinds[12];
  for (int kind = 0; kind < 12; kind++) {
    const int bytes = kind < 7 ? 64 : kind < 11 ? 570 : 1518;
    kinds[kind] = (Coming){0, kPerFrame + kPerByte * bytes, (bytes + kPreamble) * kWirePs};
  }
  Exponentials(random, 1.0 / 2.25, gap);
  for (int i = 0; i < kBlock / 4; i++) draws[i] = Draw(random);
  Coming *first = half->cores[0].coming, *second = half->cores[1].coming;
  int64_t now = half->now, last_in = half->last_in;
  uint64_t counted = 0;
  uint32_t frames = 0;
  for (; frames < kBlock; frames++) {
    const uint64_t draw = draws[frames / 4][frames % 4];
    Coming frame = kinds[((draw & UINT32_MAX) * 12) >> 32];
    now += gap[frames];
    last_in = Max(now, last_in + frame.wire);
    if (last_in >= tally.last_ps) break;
    counted += last_in >= tally.warmup_ps;
    frame.arrival = last_in;
    // Written for both cores, kept for one.
    *first = *second = frame;
    first += 1 - (draw >> 63);
    second += draw >> 63;
  }
  half->now = now;
  half->last_in = last_in;
  half->cores[0].came = (uint32_t)(first - half->cores[0].coming);
  half->cores[1].came = (uint32_t)(second - half->cores[1].coming);
  tally.arrived += counted;
  return frames;
}

static void Poll(NapiCore* core) {
  enum { kQueue = 512, kBudget = 64, kInterrupt = 1000000 };
  int64_t poll = core->poll, done = core->done;
  uint32_t in_poll = core->in_poll;
  uint64_t entered = core->entered;
  Going* going = core->going + core->ready;
  for (const Coming *frame = core->coming, *end = frame + core->came; frame < end; frame++) {
    const int64_t now = frame->arrival;
    if (core->polls[entered % kQueue] > now) {
      tally.dropped += now >= tally.warmup_ps;
      continue;
    }
    if (__builtin_expect(in_poll == kBudget, 0)) {
      poll = now <= done ? done : now + kInterrupt;
      done = Max(done, poll);
      in_poll = 0;
    }
    const int64_t same = Mask(now <= poll), opened = Max(done, now) + kInterrupt;
    poll = Either(same, poll, opened);
    done = Either(same, done, opened) + frame->cost;
    in_poll = (in_poll & (uint32_t)same) + 1;
    core->polls[entered++ % kQueue] = poll;
    *going++ = (Going){done, now, frame->wire};
  }
  going->departure = kNever;
  core->poll = poll;
  core->done = done;
  core->in_poll = in_poll;
  core->ready = (uint32_t)(going - core->going);
  core->entered = entered;
}

// Sends in order what leaves the cores until then.
static void Send(NapiHalf* half, int64_t until) {
  enum { kTxRing = 512 };
  static int64_t born[4 * kBlock + 4], first_out[4 * kBlock + 4];
  NapiCore* cores = half->cores;
  const Going *first = cores[0].going, *second = cores[1].going;
  int64_t link = half->link;
  uint64_t sent = half->sent, left = 0;
  int out = 0;
  for (;;) {
    const int64_t mine = first->departure, its = second->departure, ready = Min(mine, its);
    if (ready > until) break;
    const int64_t is_second = Mask(its < mine);
    const Going* frame = (const Going*)Either(is_second, (int64_t)second, (int64_t)first);
    first += 1 + is_second;
    second -= is_second;
    if (half->starts[sent % kTxRing] > ready) {
      tally.dropped += frame->born >= tally.warmup_ps;
      continue;
    }
    const int64_t start = Max(ready, link);
    half->starts[sent++ % kTxRing] = start;
    link = start + frame->wire;
    born[out] = frame->born;
    first_out[out++] = start;
    left += (uint64_t)(start >= tally.warmup_ps) & (uint64_t)(start <= tally.last_ps);
  }
  half->link = link;
  half->sent = sent;
  tally.left += left;
  Record(born, first_out, out);
  const Going* rest[2] = {first, second};
  for (int core = 0; core < 2; core++) {
    cores[core].ready -= (uint32_t)(rest[core] - cores[core].going);
    memmove(cores[core].going, rest[core], cores[core].ready * sizeof *rest[core]);
  }
}

static uint64_t Napi(uint64_t frames, uint64_t seed) {
  static NapiHalf half;
  Random random = Seeded(seed);
  uint64_t arrived = 0;
  tally.last_ps = (int64_t)((double)frames / 4.5 * kUs);
  for (int port = 0; port < 2; port++) {
    memset(&half, 0, sizeof half);
    for (int core = 0; core < 2; core++) half.cores[core].poll = -1;
    while (half.last_in < tally.last_ps) {
      arrived += Receive(&half, &random);
      int64_t known = kNever;
      for (int core = 0; core < 2; core++) {
        Poll(&half.cores[core]);
        known = Min(known, Max(half.last_in, half.cores[core].done));
      }
      Send(&half, half.last_in < tally.last_ps ? known : kNever - 1);
    }
  }
  return arrived;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s W1|W2|W3|NAPI FRAMES WARMUP_US SEED\n", argv[0]);
    return 2;
  }
  const char* workload = argv[1];
  const uint64_t wanted = strtoull(argv[2], NULL, 10), seed = strtoull(argv[4], NULL, 10);
  tally.warmup_ps = (int64_t)(strtod(argv[3], NULL) * kUs);
  tally.last_ps = kNever;
  const double begin = CpuSeconds();
  uint64_t frames = 0;
  if (strcmp(workload, "W1") == 0) {
    frames = W1(wanted);
  } else if (strcmp(workload, "W2") == 0) {
    frames = W2(wanted, seed);
  } else if (strcmp(workload, "W3") == 0) {
    frames = W3(wanted, seed);
  } else if (strcmp(workload, "NAPI") == 0) {
    frames = Napi(wanted, seed);
  }
  const double cpu_s = CpuSeconds() - begin;
  uint64_t recorded = 0;
  for (int lane = 0; lane < 4; lane++) {
    for (int bucket = 1; bucket < kBuckets; bucket++) recorded += tally.histogram[lane][bucket];
  }
  if (recorded == 0 || recorded != tally.latencies) {
    fprintf(stderr, "%s: the histogram has %" PRIu64 " latencies of %" PRIu64 "\n", argv[0], recorded, tally.latencies);
    return 1;
  }
  printf("{\"frames\": %" PRIu64 ", \"cpu_s\": %.9f, \"throughput_pps\": %.6f, \"loss_ratio\": %.9f, "
         "\"latency_mean_s\": %.15f}\n",
         frames, cpu_s, (double)tally.left / ((double)(tally.last_ps - tally.warmup_ps) * 1e-12),
         (double)tally.dropped / (double)tally.arrived,
         (double)tally.latency_sum_ps * 1e-12 / (double)tally.latencies);
  return 0;
}
