/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
/**
 * \file
 * \ingroup router-resources
 * A bus that every packet crosses twice (Meyer et al. 2014, eq. 1): the router forwards min{CPU, bus/2, NIC 0, NIC 1}.
 * Prints the rate beside that of eq. 1 for buses of different speed.
 */

#include "router-resources-chain.h"

#include <cmath>
#include <cstdio>

using namespace ns3;

namespace
{

constexpr double CORE = 4e-6;     ///< Seconds that a core needs for a packet.
constexpr uint32_t CORES = 4;     ///< How many cores there are.
constexpr double NIC = 0.8e-6;    ///< Seconds that a network card needs for a packet.

/**
 * \param bus seconds that the bus needs for a packet
 * \return packets that the router forwards in a second when more come
 */
double
Forwarded(double bus)
{
    Chain chain("100Gbps");
    ResourceHelper router;
    for (const auto& [name, units] : {std::pair{"NIC 0", 1U}, {"bus", 1U}, {"cpu", CORES}, {"NIC 1", 1U}})
    {
        router.AddPool(name, units);
    }
    const std::vector<std::tuple<std::string, std::string, double>> stages{
        {"receive", "NIC 0", NIC}, {"bus in", "bus", bus}, {"process", "cpu", CORE}, {"bus out", "bus", bus}, {"send", "NIC 1", NIC}};
    std::string before;
    for (const auto& [name, pool, seconds] : stages)
    {
        router.AddTaskUnit(name);
        router.AddNeed(name, pool);
        router.SetTaskUnitAttribute(name, "PerPacket", DoubleValue(seconds));
        router.SetTaskUnitAttribute(name, "Parallel", UintegerValue(pool == "cpu" ? CORES : 1));
        if (!before.empty())
        {
            router.SetRoute(before, TaskUnit::SINGLE, {name});
        }
        before = name;
    }
    // What is on its way out goes first, so that the bus does not carry in what it cannot carry out.
    router.SetPoolAttribute("bus", "Policy", EnumValue(ResourcePool::PRIORITY));
    router.SetTaskUnitAttribute("bus out", "Priority", IntegerValue(1));
    const auto resources = router.Install(chain.Router());
    chain.Send(0, 9, 64, NanoSeconds(400), MilliSeconds(1));
    uint64_t before20 = 0;
    Simulator::Schedule(MilliSeconds(21), [&] { before20 = resources->GetForwarded(); });
    Simulator::Stop(MilliSeconds(61));
    Simulator::Run();
    return (resources->GetForwarded() - before20) / 40e-3;
}

} // namespace

int
main(int argc, char* argv[])
{
    bool isChecked = false;
    CommandLine cmd(__FILE__);
    cmd.AddValue("check", "Leave with 1 unless every rate is that of eq. 1 within 0.2 %.", isChecked);
    cmd.Parse(argc, argv);
    bool isMet = true;
    std::printf("rates in kpps; CPU %.0f, NICs %.0f each, 2500 come\n", CORES / CORE * 1e-3, 1e-3 / NIC);
    std::printf("  bus  bus/2  eq. 1   here\n");
    for (const double bus : {0.2e-6, 0.4e-6, 0.5e-6, 0.6e-6, 0.8e-6, 1.6e-6})
    {
        const double expected = std::min({CORES / CORE, 0.5 / bus, 1.0 / NIC});
        const double here = Forwarded(bus);
        std::printf("%5.0f  %5.0f  %5.0f  %6.1f\n", 1e-3 / bus, 0.5e-3 / bus, 1e-3 * expected, 1e-3 * here);
        isMet = isMet && std::abs(here / expected - 1.0) < 2e-3;
    }
    return isMet || !isChecked ? 0 : 1;
}
