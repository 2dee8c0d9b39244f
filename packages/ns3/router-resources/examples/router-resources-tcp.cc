/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
/**
 * \file
 * \ingroup router-resources
 * A transfer by TCP through a router whose core is slower than its links, beside the same router without resources: goodput,
 * round-trip time, packets lost. The queue in front of the core is what TCP fills.
 */

#include "router-resources-chain.h"

#include <cstdio>

using namespace ns3;

namespace
{

/// What came out.
struct Outcome
{
    double goodputMbps; //!< Bytes that the application got, over time [Mbit/s].
    double meanRttMs;   //!< Mean of the sender's samples [ms].
    uint64_t dropped;   //!< Packets that found the core's queue full.
    uint64_t served;    //!< Packets served.
};

/**
 * \param seconds what a core needs for a packet; 0: the router has no resources
 * \param queue packets that can wait for it
 * \return what came out
 */
Outcome
Transfer(double seconds, uint32_t queue)
{
    Chain chain("100Mbps", MilliSeconds(1));
    Ptr<RouterResources> resources;
    if (seconds > 0.0)
    {
        ResourceHelper router;
        router.AddPool("cpu", 1);
        router.AddTaskUnit("core");
        router.AddNeed("core", "cpu");
        router.SetTaskUnitAttribute("core", "PerPacket", DoubleValue(seconds));
        router.SetTaskUnitAttribute("core", "QueueSize", UintegerValue(queue));
        resources = router.Install(chain.Router());
    }
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(chain.addresses[1], 80));
    bulk.Install(chain.Host(0)).Start(Seconds(1));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 80));
    auto server = DynamicCast<PacketSink>(sink.Install(chain.Host(1)).Get(0));
    double sum = 0.0;
    uint64_t samples = 0;
    Simulator::Schedule(Seconds(1) + MilliSeconds(1), [&] {
        Config::ConnectWithoutContext("/NodeList/0/$ns3::TcpL4Protocol/SocketList/*/RTT",
                                      Callback<void, Time, Time>([&](Time, Time rtt) {
                                          sum += rtt.GetSeconds();
                                          samples++;
                                      }));
    });
    Simulator::Stop(Seconds(6));
    Simulator::Run();
    return {server->GetTotalRx() * 8e-6 / 5.0,
            samples > 0 ? 1e3 * sum / samples : 0.0,
            resources ? resources->GetDropped() : 0,
            resources ? resources->GetForwarded() : 0};
}

} // namespace

int
main(int argc, char* argv[])
{
    bool isChecked = false;
    CommandLine cmd(__FILE__);
    cmd.AddValue("check", "Leave with 1 unless the core limits the transfer as it should.", isChecked);
    cmd.Parse(argc, argv);
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    std::printf("TCP over two links of 100 Mbit/s, 1 ms each, for 5 s\n");
    std::printf("a packet takes   queue  goodput, Mbit/s  RTT, ms  dropped  served\n");
    bool isMet = true;
    const Outcome plain = Transfer(0.0, 0);
    std::printf("nothing              -  %15.1f  %7.2f        -       -\n", plain.goodputMbps, plain.meanRttMs);
    for (const auto& [seconds, queue] : {std::pair{50e-6, 512U}, {200e-6, 512U}, {200e-6, 32U}, {500e-6, 32U}})
    {
        const Outcome outcome = Transfer(seconds, queue);
        std::printf("%4.0f us          %5u  %15.1f  %7.2f  %7llu  %6llu\n",
                    1e6 * seconds,
                    queue,
                    outcome.goodputMbps,
                    outcome.meanRttMs,
                    static_cast<unsigned long long>(outcome.dropped),
                    static_cast<unsigned long long>(outcome.served));
        // Acknowledgements, one for two segments, take the core as well.
        const double most = 1448 * 8e-6 / seconds / 1.5;
        isMet = isMet && outcome.goodputMbps <= 1.02 * std::min(most, 100.0) &&
                outcome.goodputMbps >= 0.75 * std::min(most, plain.goodputMbps);
    }
    return isMet || !isChecked ? 0 : 1;
}
