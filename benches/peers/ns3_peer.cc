// The benchmark workloads on ns-3's event scheduler alone: no nodes, sockets or devices, which would make ns-3 some
// forty times slower. That is the fairest comparison of engines, and the hardest one for us.
//
//   ns3_peer WORKLOAD FRAMES WARMUP_US SEED   prints one line of JSON
//
// Times are integer picoseconds, as in ns-3 with Time::SetResolution(Time::PS).
#include "ns3/core-module.h"

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <time.h>
#include <vector>

using namespace ns3;

namespace {

int64_t Now() { return Simulator::Now().GetTimeStep(); }

Time Microseconds(double us) { return PicoSeconds(static_cast<int64_t>(us * 1e6 + 0.5)); }

Ptr<ExponentialRandomVariable> Exponential(double mean_us) {
  auto variable = CreateObject<ExponentialRandomVariable>();
  variable->SetAttribute("Mean", DoubleValue(mean_us));
  return variable;
}

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

// Counts what happens between the end of the warm-up and the last arrival.
struct Tally {
  int64_t warmup_ps = 0;
  int64_t last_ps = 0;
  uint64_t arrived = 0, dropped = 0, left = 0, left_by_last = 0;
  std::vector<float> sojourn_us;

  void Arrived() { arrived += Now() >= warmup_ps; }
  void Dropped() { dropped += Now() >= warmup_ps; }
  void Left(int64_t born) {
    const int64_t now = Now();
    left += now >= warmup_ps;
    if (born >= warmup_ps) sojourn_us.push_back((now - born) * 1e-6F);
  }
  void Last() {
    last_ps = Now();
    left_by_last = left;
  }
} tally;

// W1: four cores with queues of 512 frames; two ports of 50 flows each, half a gap apart; flow f goes to core f mod 4.
namespace w1 {

constexpr int64_t kGapPs = 416'667, kServicePs = 1'000'000;
constexpr uint32_t kQueue = 512;

struct Core {
  std::array<int64_t, kQueue> waiting;
  uint32_t head = 0, tail = 0;
  int64_t born = 0;
  bool busy = false;
};
std::array<Core, 4> cores;
std::array<int, 2> flow{0, 50};
std::array<uint64_t, 2> remaining;

void Done(int number) {
  Core& core = cores[number];
  tally.Left(core.born);
  if (core.head == core.tail) {
    core.busy = false;
    return;
  }
  core.born = core.waiting[core.head++ % kQueue];
  Simulator::Schedule(PicoSeconds(kServicePs), &Done, number);
}

void Arrive(int port) {
  tally.Arrived();
  if (--remaining[port] > 0) {
    Simulator::Schedule(PicoSeconds(kGapPs), &Arrive, port);
  } else {
    tally.Last();
  }
  const int number = flow[port] % 4;
  if (++flow[port] == 50 + 50 * port) flow[port] = 50 * port;
  Core& core = cores[number];
  if (!core.busy) {
    core.busy = true;
    core.born = Now();
    Simulator::Schedule(PicoSeconds(kServicePs), &Done, number);
  } else if (core.tail - core.head < kQueue) {
    core.waiting[core.tail++ % kQueue] = Now();
  } else {
    tally.Dropped();
  }
}

void Start(uint64_t frames) {
  remaining = {(frames + 1) / 2, frames / 2};
  Simulator::Schedule(PicoSeconds(0), &Arrive, 0);
  Simulator::Schedule(PicoSeconds(kGapPs / 2), &Arrive, 1);
}

}  // namespace w1

// W2: one exponential server, 49 places to wait, Poisson arrivals.
namespace w2 {

Ptr<ExponentialRandomVariable> gap, service;
std::deque<int64_t> waiting;
bool busy = false;
int64_t current = 0;
uint64_t remaining = 0;

void Done() {
  tally.Left(current);
  if (waiting.empty()) {
    busy = false;
    return;
  }
  current = waiting.front();
  waiting.pop_front();
  Simulator::Schedule(Microseconds(service->GetValue()), &Done);
}

void Arrive() {
  tally.Arrived();
  if (--remaining > 0) {
    Simulator::Schedule(Microseconds(gap->GetValue()), &Arrive);
  } else {
    tally.Last();
  }
  if (!busy) {
    busy = true;
    current = Now();
    Simulator::Schedule(Microseconds(service->GetValue()), &Done);
  } else if (waiting.size() < 49) {
    waiting.push_back(Now());
  } else {
    tally.Dropped();
  }
}

void Start(uint64_t frames) {
  gap = Exponential(1.0 / 0.9);
  service = Exponential(1.0);
  remaining = frames;
  Simulator::Schedule(Microseconds(gap->GetValue()), &Arrive);
}

}  // namespace w2

// W3: receiving NIC, bus, four cores with a common queue, the same bus, sending NIC; all exponential.
namespace w3 {

struct Frame {
  int64_t born;
  std::size_t step;
};
struct Station {
  int units;
  double mean_us;
  Ptr<ExponentialRandomVariable> service;
  int busy = 0;
  std::deque<Frame*> waiting{};
};
std::array<Station, 4> stations{{{1, 0.15, {}}, {1, 0.1, {}}, {4, 1.0, {}}, {1, 0.15, {}}}};
constexpr std::array<int, 5> kWay{0, 1, 2, 1, 3};
Ptr<ExponentialRandomVariable> gap;
uint64_t remaining = 0;

void Done(Frame* frame);

void Enter(Frame* frame) {
  Station& station = stations[kWay[frame->step]];
  if (station.busy < station.units) {
    station.busy++;
    Simulator::Schedule(Microseconds(station.service->GetValue()), &Done, frame);
  } else {
    station.waiting.push_back(frame);
  }
}

void Done(Frame* frame) {
  Station& station = stations[kWay[frame->step]];
  if (station.waiting.empty()) {
    station.busy--;
  } else {
    Frame* next = station.waiting.front();
    station.waiting.pop_front();
    Simulator::Schedule(Microseconds(station.service->GetValue()), &Done, next);
  }
  if (++frame->step < kWay.size()) {
    Enter(frame);
  } else {
    tally.Left(frame->born);
    delete frame;
  }
}

void Arrive() {
  tally.Arrived();
  if (--remaining > 0) {
    Simulator::Schedule(Microseconds(gap->GetValue()), &Arrive);
  } else {
    tally.Last();
  }
  Enter(new Frame{Now(), 0});
}

void Start(uint64_t frames) {
  for (Station& station : stations) station.service = Exponential(station.mean_us);
  gap = Exponential(1.0 / 3.2);
  remaining = frames;
  Simulator::Schedule(Microseconds(gap->GetValue()), &Arrive);
}

}  // namespace w3

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s W1|W2|W3 FRAMES WARMUP_US SEED\n", argv[0]);
    return 2;
  }
  const std::string workload = argv[1];
  const uint64_t frames = std::strtoull(argv[2], nullptr, 10);
  Time::SetResolution(Time::PS);
  RngSeedManager::SetRun(std::strtoull(argv[4], nullptr, 10));
  tally.warmup_ps = static_cast<int64_t>(std::strtod(argv[3], nullptr) * 1e6);
  tally.sojourn_us.reserve(frames);
  const double begin = CpuSeconds();
  if (workload == "W1") {
    w1::Start(frames);
  } else if (workload == "W2") {
    w2::Start(frames);
  } else {
    w3::Start(frames);
  }
  Simulator::Run();
  const double cpu_s = CpuSeconds() - begin;
  Simulator::Destroy();
  double sum_us = 0.0;
  for (const float us : tally.sojourn_us) sum_us += us;
  std::printf("{\"frames\": %" PRIu64 ", \"cpu_s\": %.9f, \"throughput_pps\": %.6f, \"loss_ratio\": %.9f, "
              "\"latency_mean_s\": %.15f}\n",
              frames, cpu_s, tally.left_by_last / ((tally.last_ps - tally.warmup_ps) * 1e-12),
              static_cast<double>(tally.dropped) / tally.arrived, sum_us * 1e-6 / tally.sojourn_us.size());
  return 0;
}
