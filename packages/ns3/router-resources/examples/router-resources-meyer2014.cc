/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
/**
 * \file
 * \ingroup router-resources
 * The case study of Meyer et al. 2014 (PIK 37(1), sec. VI): two hosts, a quad-core software router between them, two
 * links of 10 Gbit/s. Prints Table II beside the measured throughput, the paper's own simulation and eq. 5, and Fig. 9.
 *
 * \code
 *   host 1 ---- 10 Gbit/s ---- router (four cores) ---- 10 Gbit/s ---- host 2
 * \endcode
 *
 * Flows with odd numbers go from host 1 to host 2, the others back; 20 Gbit/s in all. While there are enough cores each
 * flow has one of its own, as in the paper: its port is chosen so that its Toeplitz hash says so.
 */

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/resource-helper.h"
#include "ns3/traffic-control-helper.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

using namespace ns3;

namespace
{

/// Meyer et al. 2014, Table I(b): D [Gbit/s] = (a k + a0) S + (b k + b0), with k cores in use (eq. 5).
constexpr double A = 0.011392;
constexpr double A0 = 0.002708;
constexpr double B = 0.227037;
constexpr double B0 = 0.063321;

/// A row of Table II: what was measured, and what the paper's module simulated [Gbit/s].
struct Row
{
    uint32_t flows;
    uint32_t frameBytes;
    double measured;
    double simulated;
};

/// Meyer et al. 2014, Table II.
const Row TABLE_II[] = {
    {1, 64, 1.1928, 1.1943},
    {1, 128, 2.0936, 2.0968},
    {1, 256, 3.9097, 3.9033},
    {1, 512, 7.5099, 7.5237},
    {1, 1024, 9.9379, 9.9276},
    {1, 1518, 9.9682, 9.8951},
    {2, 64, 2.2265, 2.1516},
    {2, 128, 3.9251, 3.7849},
    {2, 256, 7.3182, 7.0583},
    {2, 512, 14.0514, 13.5834},
    {3, 64, 3.1858, 3.1073},
    {3, 128, 5.6076, 5.4744},
    {3, 256, 10.4578, 10.1926},
    {3, 512, 16.7076, 16.4304},
    {4, 64, 4.0612, 4.0686},
    {4, 128, 7.1429, 7.1573},
    {4, 256, 13.3304, 13.3450},
    {100, 64, 4.0191, 4.0686},
    {100, 128, 7.0684, 7.1574},
    {100, 256, 13.1533, 13.3461},
};

/**
 * \param cores cores in use
 * \param frameBytes frame size [B]
 * \return throughput by eq. 5 [Gbit/s]
 */
double
Equation5(uint32_t cores, uint32_t frameBytes)
{
    return (A * cores + A0) * frameBytes + (B * cores + B0);
}

/// What is simulated.
struct Scenario
{
    uint32_t flows;        //!< How many flows.
    uint32_t frameBytes;   //!< Their frames [B].
    uint32_t cores;        //!< Cores of the router.
    double linkGbps;       //!< Rate of a link [Gbit/s].
    Time duration;         //!< Simulated time.
    bool isConstrained;    //!< Whether the router has resources.
    bool isDynamic;        //!< Whether k of eq. 7 is the number of cores at work rather than of cores in use.
    TaskUnit::Rounding rounding; //!< How service times are cut.
    bool isBalanced;       //!< Whether the last of an odd number of flows comes half from either side.
};

/// What a host sends.
struct Source
{
    uint32_t flow;  //!< Number of the flow, from 0, which is that of its core while there are enough.
    bool isForth;   //!< Whether host 1 sends it.
    double gbps;    //!< Its rate, with preamble and gap [Gbit/s].
};

/**
 * \param scenario a scenario
 * \return what hosts send: twice a link's rate in all, spread evenly over the flows; what would not fit on the link of a
 * host is cut in proportion
 */
std::vector<Source>
GetSources(const Scenario& scenario)
{
    std::vector<Source> sources;
    const double each = 2.0 * scenario.linkGbps / scenario.flows;
    for (uint32_t flow = 0; flow < scenario.flows; flow++)
    {
        if (scenario.isBalanced && flow + 1 == scenario.flows && flow % 2 == 0)
        {
            sources.push_back({flow, true, each / 2});
            sources.push_back({flow, false, each / 2});
        }
        else
        {
            sources.push_back({flow, flow % 2 == 0, each});
        }
    }
    for (const bool isForth : {true, false})
    {
        double all = 0.0;
        for (const Source& source : sources)
        {
            all += source.isForth == isForth ? source.gbps : 0.0;
        }
        for (Source& source : sources)
        {
            source.gbps *= source.isForth == isForth ? std::min(1.0, scenario.linkGbps / all) : 1.0;
        }
    }
    return sources;
}

/// What came out.
struct Outcome
{
    double gbps;              //!< Throughput with preamble and gap [Gbit/s].
    uint64_t received;        //!< Packets at the sinks.
    uint64_t served;          //!< Packets that the router served.
    uint64_t events;          //!< Events.
};

/**
 * \param scenario what to simulate
 * \return what came out
 */
Outcome
Simulate(const Scenario& scenario)
{
    const uint32_t flows = scenario.flows;
    const uint32_t frameBytes = scenario.frameBytes;
    NodeContainer nodes;
    nodes.Create(3);
    PointToPointHelper link;
    // PPP has 2 bytes around an IP packet; Ethernet 18, and preamble and gap 20 more: the difference is a gap.
    const double gapBits = 8.0 * (18 + 20 - 2);
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(scenario.linkGbps * 1e9))));
    link.SetDeviceAttribute("InterframeGap", TimeValue(Seconds(gapBits / (scenario.linkGbps * 1e9))));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("512p"));
    const NetDeviceContainer left = link.Install(nodes.Get(0), nodes.Get(1));
    const NetDeviceContainer right = link.Install(nodes.Get(1), nodes.Get(2));
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);
    Ipv4AddressHelper address;
    address.SetBase("10.0.1.0", "255.255.255.0");
    const Ipv4InterfaceContainer leftAddress = address.Assign(left);
    address.SetBase("10.0.2.0", "255.255.255.0");
    const Ipv4InterfaceContainer rightAddress = address.Assign(right);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    // Queue discs would hold back what the links cannot carry, and cost events that the paper's hosts do not have.
    TrafficControlHelper().Uninstall(left);
    TrafficControlHelper().Uninstall(right);

    Ptr<RouterResources> router;
    if (scenario.isConstrained)
    {
        // Eq. 6 and 7: a core needs x_core = k x for a frame while k cores are in use, here as many as flows keep busy.
        const double wireBits = 8.0 * (frameBytes + 20);
        const auto coreSeconds = [frameBytes, wireBits](uint32_t k) {
            return k * wireBits / (Equation5(k, frameBytes) * 1e9);
        };
        std::vector<double> contention;
        const double one = coreSeconds(scenario.isDynamic ? 1 : std::min(flows, scenario.cores));
        for (uint32_t k = 1; k <= scenario.cores && scenario.isDynamic; k++)
        {
            contention.push_back(coreSeconds(k) / one);
        }
        ResourceHelper resources;
        resources.AddPool("cpu", scenario.cores, contention);
        resources.AddReceiveSideScaling("cpu", scenario.cores, one);
        for (uint32_t core = 0; core < scenario.cores; core++)
        {
            resources.SetTaskUnitAttribute("core " + std::to_string(core), "Rounding", EnumValue(scenario.rounding));
        }
        router = resources.Install(nodes.Get(1));
    }

    const uint32_t payload = frameBytes - 18 - 20 - 8;
    const double wireBits = 8.0 * (frameBytes + 20);
    ApplicationContainer sinks;
    uint32_t count = 0;
    for (const Source& source : GetSources(scenario))
    {
        const Ipv4Address from = source.isForth ? leftAddress.GetAddress(0) : rightAddress.GetAddress(1);
        const Ipv4Address to = source.isForth ? rightAddress.GetAddress(1) : leftAddress.GetAddress(0);
        const uint16_t port = 5000 + count;
        uint16_t fromPort = 1024 + (count * 40503) % 60000;
        while (flows <= scenario.cores &&
               RouterResources::GetFlowHash(from, to, fromPort, port) % 128 % scenario.cores != source.flow)
        {
            fromPort++;
        }
        PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.Add(sink.Install(nodes.Get(source.isForth ? 2 : 0)));
        OnOffHelper sender("ns3::UdpSocketFactory", InetSocketAddress(to, port));
        sender.SetAttribute("Local", AddressValue(InetSocketAddress(from, fromPort)));
        sender.SetAttribute("PacketSize", UintegerValue(payload));
        sender.SetAttribute("OnTime", StringValue("ns3::ConstantRandomVariable[Constant=1000]"));
        sender.SetAttribute("OffTime", StringValue("ns3::ConstantRandomVariable[Constant=0]"));
        const double packetsPerSecond = source.gbps * 1e9 / wireBits;
        sender.SetAttribute("DataRate", DataRateValue(DataRate(std::llround(8.0 * payload * packetsPerSecond))));
        sender.Install(nodes.Get(source.isForth ? 0 : 2)).Start(Seconds(count / packetsPerSecond / flows));
        count++;
    }
    const auto bytes = [&sinks] {
        uint64_t all = 0;
        for (uint32_t i = 0; i < sinks.GetN(); i++)
        {
            all += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
        }
        return all;
    };
    uint64_t before = 0;
    const Time from = scenario.duration / 4;
    Simulator::Schedule(from, [&before, &bytes] { before = bytes(); });
    Simulator::Stop(scenario.duration);
    Simulator::Run();
    Outcome outcome{};
    outcome.received = bytes() / payload;
    const double pps = double(bytes() - before) / payload / (scenario.duration - from).GetSeconds();
    outcome.gbps = pps * 8.0 * (frameBytes + 20) / 1e9;
    outcome.events = Simulator::GetEventCount();
    outcome.served = router ? router->GetForwarded() : 0;
    Simulator::Destroy();
    return outcome;
}

/**
 * \param scenario a scenario
 * \return throughput by eq. 5 and the links [Gbit/s]: what each direction's link carries, and its flows' cores serve
 */
double
Expected(const Scenario& scenario)
{
    const uint32_t used = std::min(scenario.flows, scenario.cores);
    if (scenario.flows > scenario.cores)
    {
        return std::min(Equation5(used, scenario.frameBytes), 2.0 * scenario.linkGbps);
    }
    double all = 0.0;
    for (const Source& source : GetSources(scenario))
    {
        const double share = scenario.isBalanced && scenario.flows % 2 && source.flow + 1 == scenario.flows ? 0.5 : 1.0;
        all += std::min(source.gbps, share * Equation5(used, scenario.frameBytes) / used);
    }
    return all;
}

/**
 * Prints Fig. 8: what Table II has, and what lies between its rows.
 * \param base scenario of the table
 * \param found throughput of the rows of the table, by flows and frame size [Gbit/s]
 * \return whether each is within 0.05 % of eq. 5 or the links
 */
bool
PrintFigure8(const Scenario& base, std::map<std::pair<uint32_t, uint32_t>, double> found)
{
    const uint32_t sizes[] = {64, 128, 256, 512, 1024, 1518};
    const uint32_t flows[] = {1, 2, 3, 4, 100};
    bool isMet = true;
    for (const uint32_t size : sizes)
    {
        for (const uint32_t count : flows)
        {
            Scenario scenario = base;
            scenario.flows = count;
            scenario.frameBytes = size;
            auto& gbps = found[{count, size}];
            gbps = gbps > 0.0 ? gbps : Simulate(scenario).gbps;
            isMet = isMet && std::abs(gbps / Expected(scenario) - 1.0) <= 0.0005;
        }
    }
    for (const bool isPackets : {true, false})
    {
        std::printf("\nFig. 8(%s): throughput [%s] over frame size, by flows\n frame",
                    isPackets ? "a" : "b",
                    isPackets ? "Mpps" : "Gbit/s");
        for (const uint32_t count : flows)
        {
            std::printf("  %8u", count);
        }
        std::printf("\n");
        for (const uint32_t size : sizes)
        {
            std::printf("%4u B", size);
            for (const uint32_t count : flows)
            {
                const double gbps = found[{count, size}];
                std::printf("  %8.4f", isPackets ? gbps * 1e3 / (8.0 * (size + 20)) : gbps);
            }
            std::printf("\n");
        }
    }
    std::printf("all points within 0.05 %%: %s\n", isMet ? "yes" : "no");
    return isMet;
}

} // namespace

int
main(int argc, char* argv[])
{
    Scenario base{0, 0, 4, 10.0, MilliSeconds(10), true, false, TaskUnit::NEAREST, false};
    bool isWholeNanoseconds = false;
    bool isChecked = false;
    CommandLine cmd(__FILE__);
    cmd.AddValue("duration", "Simulated time of each row.", base.duration);
    cmd.AddValue("dynamic", "k of eq. 7 is the number of cores at work, not of cores in use.", base.isDynamic);
    cmd.AddValue("nanoseconds", "Cut service times to whole nanoseconds, as the paper's digits were.", isWholeNanoseconds);
    cmd.AddValue("check", "Leave with 1 unless every row is as close as it should be.", isChecked);
    cmd.Parse(argc, argv);
    if (!isWholeNanoseconds)
    {
        Time::SetResolution(Time::PS);
    }
    base.rounding = isWholeNanoseconds ? TaskUnit::DOWN : TaskUnit::NEAREST;

    bool isMet = true;
    std::map<std::pair<uint32_t, uint32_t>, double> found;
    const double bound = isWholeNanoseconds ? 0.0008 : 0.0005;
    std::printf("Table II: throughput [Gbit/s], four cores, two links of 10 Gbit/s\n");
    std::printf("flows  frame  measured  paper's ns-3  eq. 5, links  here     from %s\n",
                isWholeNanoseconds ? "the paper's ns-3" : "eq. 5, links");
    for (const Row& row : TABLE_II)
    {
        Scenario scenario = base;
        scenario.flows = row.flows;
        scenario.frameBytes = row.frameBytes;
        const double expected = Expected(scenario);
        const bool isCoreLimited =
            std::abs(expected - Equation5(std::min(row.flows, scenario.cores), row.frameBytes)) < 1e-9;
        if (isWholeNanoseconds && !isCoreLimited)
        {
            continue; // links are not cut to nanoseconds in the same way
        }
        const Outcome outcome = Simulate(scenario);
        found[{row.flows, row.frameBytes}] = outcome.gbps;
        const double error = outcome.gbps / (isWholeNanoseconds ? row.simulated : expected) - 1.0;
        std::printf("%5u  %3u B  %8.4f  %12.4f  %12.4f  %7.4f  %+.3f %%\n",
                    row.flows,
                    row.frameBytes,
                    row.measured,
                    row.simulated,
                    expected,
                    outcome.gbps,
                    100.0 * error);
        isMet = isMet && std::abs(error) <= bound;
    }
    std::printf("all rows within %.2f %%: %s\n", 100.0 * bound, isMet ? "yes" : "no");
    if (!isWholeNanoseconds)
    {
        isMet = PrintFigure8(base, found) && isMet;
        std::printf("\nFig. 9: throughput [Gbit/s], eight cores, two links of 50 Gbit/s, frames of 1518 B\n");
        std::printf("(of an odd number of flows the last one comes half from either side)\n");
        std::printf("flows  eq. 5     links  here      from the lesser\n");
        for (uint32_t flows = 1; flows <= 8; flows++)
        {
            Scenario scenario = base;
            scenario.flows = flows;
            scenario.frameBytes = 1518;
            scenario.cores = 8;
            scenario.linkGbps = 50.0;
            scenario.isBalanced = true;
            const double lesser = std::min(Equation5(flows, 1518), 100.0);
            const double here = Simulate(scenario).gbps;
            const double error = here / lesser - 1.0;
            isMet = isMet && std::abs(error) <= bound;
            std::printf("%5u  %8.4f  %5.1f  %8.4f  %+.3f %%\n", flows, Equation5(flows, 1518), 100.0, here, 100.0 * error);
        }
    }
    return isMet || !isChecked ? 0 : 1;
}
