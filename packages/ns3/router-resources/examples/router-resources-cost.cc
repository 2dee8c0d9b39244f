/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
/**
 * \file
 * \ingroup router-resources
 * What the module costs: events and processor time of a packet beside the same scenario without it, at a load without loss, and
 * the memory of the process after a tenth and after all of the packets.
 */

#include "router-resources-chain.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>

using namespace ns3;

namespace
{

/// What was seen.
struct Cost
{
    double seconds;    //!< Processor time.
    double events;     //!< Events of a packet.
    uint64_t received; //!< Packets that arrived.
    double early;      //!< Memory after a tenth [MiB].
    double late;       //!< Memory at the end [MiB].
};

/**
 * \return memory of this process [MiB]
 */
double
Memory()
{
    std::ifstream file("/proc/self/statm");
    double size = 0.0;
    double resident = 0.0;
    file >> size >> resident;
    return resident * 4096 / (1 << 20);
}

/**
 * \param isConstrained whether the router has resources
 * \param packets how many are sent
 * \return what it cost
 */
Cost
Run(bool isConstrained, uint32_t packets)
{
    Chain chain;
    if (isConstrained)
    {
        ResourceHelper router;
        router.AddPool("cpu", 4, {1.0, 1.05, 1.1, 1.15});
        router.AddReceiveSideScaling("cpu", 4, 560e-9, 14e-12);
        router.Install(chain.Router());
    }
    std::vector<Ptr<PacketSink>> sinks;
    for (uint16_t flow = 0; flow < 4; flow++)
    {
        sinks.push_back(chain.Send(flow % 2, 9 + flow, 200, NanoSeconds(4000), MilliSeconds(1) + NanoSeconds(1000 * flow)));
    }
    const Time end = MilliSeconds(1) + NanoSeconds(1000) * packets;
    Cost cost{};
    Simulator::Schedule(end / 10, [&cost] { cost.early = Memory(); });
    Simulator::Stop(end);
    const std::clock_t begin = std::clock();
    Simulator::Run();
    cost.seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
    cost.late = Memory();
    for (const auto& sink : sinks)
    {
        cost.received += sink->GetTotalRx() / 200;
    }
    cost.events = double(Simulator::GetEventCount()) / cost.received;
    return cost;
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t packets = 200000;
    uint32_t repetitions = 5;
    CommandLine cmd(__FILE__);
    cmd.AddValue("packets", "Packets of a run.", packets);
    cmd.AddValue("repetitions", "Runs of either kind, in turn.", repetitions);
    cmd.Parse(argc, argv);
    std::vector<double> ratios;
    Cost without{};
    Cost with{};
    for (uint32_t repetition = 0; repetition < repetitions; repetition++)
    {
        without = Run(false, packets);
        with = Run(true, packets);
        ratios.push_back(without.seconds / with.seconds);
    }
    std::sort(ratios.begin(), ratios.end());
    std::printf("packets                 %u, of which %llu and %llu arrived\n",
                packets,
                static_cast<unsigned long long>(without.received),
                static_cast<unsigned long long>(with.received));
    std::printf("events of a packet      %.2f without, %.2f with\n", without.events, with.events);
    std::printf("speed beside without    %.2f (median of %u; %.2f to %.2f)\n",
                ratios[ratios.size() / 2],
                repetitions,
                ratios.front(),
                ratios.back());
    std::printf("memory with, MiB        %.1f after a tenth, %.1f at the end\n", with.early, with.late);
    return 0;
}
