/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
/**
 * \file
 * \ingroup router-resources
 * A router on a battery: packets come over Wi-Fi, take the core, and leave over a wire. Radio and core draw from one source of
 * ns-3's energy framework. Prints what each drew at several loads, and when a small battery is empty: from then on nothing is
 * forwarded.
 */

#include "ns3/applications-module.h"
#include "ns3/basic-energy-source-helper.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-helper.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/resource-energy-model.h"
#include "ns3/resource-helper.h"
#include "ns3/wifi-helper.h"
#include "ns3/wifi-mac-helper.h"
#include "ns3/wifi-radio-energy-model-helper.h"
#include "ns3/yans-wifi-helper.h"

#include <cmath>
#include <cstdio>

using namespace ns3;

namespace
{

/// What was seen.
struct Outcome
{
    uint64_t sent;     //!< Packets that came.
    uint64_t served;   //!< Packets that took the core.
    double radio;      //!< What the radio drew [J].
    double core;       //!< What the core drew [J].
    double pools;      //!< The same, as the pool says it [J].
    double drained;    //!< What left the battery [J].
    double empty;      //!< When the battery was empty [s]; 0: it was not.
};

/**
 * \param rate packets in a second
 * \param battery energy of the battery [J]
 * \return what was seen in ten seconds
 */
Outcome
Simulate(double rate, double battery)
{
    NodeContainer nodes;
    nodes.Create(3);
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("OfdmRate54Mbps"));
    YansWifiPhyHelper phy;
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    const auto radios = wifi.Install(phy, mac, NodeContainer(nodes.Get(0), nodes.Get(1)));
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    const auto wire = link.Install(nodes.Get(1), nodes.Get(2));
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);
    Ipv4AddressHelper address("10.0.1.0", "255.255.255.0");
    address.Assign(radios);
    address.SetBase("10.0.2.0", "255.255.255.0");
    const auto there = address.Assign(wire).GetAddress(1);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    // An embedded core: 2 W busy, 0.5 W idle, 100 us a packet.
    ResourceHelper helper;
    helper.AddPool("cpu", 1);
    helper.SetPoolAttribute("cpu", "ActivePower", DoubleValue(2.0));
    helper.SetPoolAttribute("cpu", "IdlePower", DoubleValue(0.5));
    helper.AddTaskUnit("core");
    helper.AddNeed("core", "cpu");
    helper.SetTaskUnitAttribute("core", "PerPacket", DoubleValue(100e-6));
    const auto router = helper.Install(nodes.Get(1));

    BasicEnergySourceHelper energy;
    energy.Set("BasicEnergySourceInitialEnergyJ", DoubleValue(battery));
    energy.Set("BasicEnergySupplyVoltageV", DoubleValue(3.7));
    const auto source = energy.Install(nodes.Get(1)).Get(0);
    // The radio stays on: ns-3 ends with an assertion where one is switched off in the midst of a reception.
    WifiRadioEnergyModelHelper draws;
    draws.SetDepletionCallback(Callback<void>([] {}));
    const auto radio = draws.Install(radios.Get(1), source).Get(0);
    const auto core = ResourceEnergyModel::Install(router, source);

    PacketSinkHelper("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9)).Install(nodes.Get(2));
    Outcome seen{};
    source->TraceConnectWithoutContext("RemainingEnergy", Callback<void, double, double>([&seen, battery](double, double left) {
                                           if (seen.empty == 0.0 && left <= 0.1001 * battery)
                                           {
                                               seen.empty = Simulator::Now().GetSeconds();
                                               Simulator::Stop(MilliSeconds(50));
                                           }
                                       }));
    UdpClientHelper client(there, 9);
    client.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX));
    client.SetAttribute("Interval", TimeValue(Seconds(1.0 / rate)));
    client.SetAttribute("PacketSize", UintegerValue(1000));
    client.Install(nodes.Get(0)).Start(MilliSeconds(100));
    Simulator::Stop(Seconds(10));
    Simulator::Run();
    seen.drained = battery - source->GetRemainingEnergy();
    seen.sent = router->GetOffered();
    seen.served = router->GetForwarded();
    seen.radio = radio->GetTotalEnergyConsumption();
    seen.core = core->GetTotalEnergyConsumption();
    seen.pools = router->GetManager()->GetPool(0)->GetEnergy();
    Simulator::Destroy();
    return seen;
}

} // namespace

int
main(int argc, char* argv[])
{
    bool isChecked = false;
    CommandLine cmd(__FILE__);
    cmd.AddValue("check", "Leave with 1 unless the battery gave what radio and core drew, and nothing is forwarded without.", isChecked);
    cmd.Parse(argc, argv);
    std::printf("Wi-Fi at 54 Mbit/s in, 1 Gbit/s out, packets of 1000 B, 10 s\n");
    std::printf("packets/s  forwarded  radio [J]  core [J]  battery gave [J]  mJ a packet\n");
    bool isMet = true;
    for (const double rate : {100.0, 1000.0, 2000.0})
    {
        const Outcome seen = Simulate(rate, 1000.0);
        std::printf("%9.0f  %9lu  %9.3f  %8.3f  %16.3f  %11.3f\n",
                    rate,
                    static_cast<unsigned long>(seen.served),
                    seen.radio,
                    seen.core,
                    seen.drained,
                    1e3 * seen.drained / seen.served);
        const double core = 10.0 * 0.5 + seen.served * 100e-6 * 1.5;
        isMet = isMet && std::abs(seen.core - core) < 1e-3 && std::abs(seen.core - seen.pools) < 1e-9 &&
                std::abs(seen.drained - seen.radio - seen.core) < 1e-3 * seen.drained && seen.served > 9.5 * rate;
    }
    const Outcome seen = Simulate(1000.0, 10.0);
    std::printf("a battery of 10 J is at its reserve of 10 %% after %.2f s: %lu packets were forwarded, then none\n",
                seen.empty,
                static_cast<unsigned long>(seen.served));
    // The power of the second row lasts until 9 J are gone.
    isMet = isMet && seen.empty > 0.0 && std::abs(seen.served - 1000.0 * (seen.empty - 0.1)) < 20.0;
    return isMet || !isChecked ? 0 : 1;
}
