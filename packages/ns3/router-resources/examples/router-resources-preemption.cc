/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
/**
 * \file
 * \ingroup router-resources
 * One core, two classes of packets, one of them urgent: what it waits while the pool lets requests wait (Priority), and while
 * it revokes units (Preemptive). Prints the messages of the first packets, and mean sojourn times of both.
 */

#include "router-resources-chain.h"

#include <cstdio>
#include <map>

using namespace ns3;

namespace
{

/// What was seen.
struct Seen
{
    uint32_t messages{0};                            //!< Messages printed.
    std::map<std::string, std::pair<double, int>> sojourns; //!< Sum and number, by class.
    std::map<ResourceMessage, int> kinds;            //!< Messages by kind.
};

/**
 * Simulates a pool and prints what happens.
 * \param policy its policy
 * \param name name of the policy
 * \return what was seen
 */
Seen
Simulate(ResourcePool::Policy policy, const std::string& name)
{
    Chain chain;
    ResourceHelper router;
    router.AddPool("cpu", 1);
    router.SetPoolAttribute("cpu", "Policy", EnumValue(policy));
    for (const auto& [unit, seconds, priority] : {std::tuple{"bulk", 20e-6, 0}, {"urgent", 2e-6, 1}})
    {
        router.AddTaskUnit(unit);
        router.AddNeed(unit, "cpu");
        router.SetTaskUnitAttribute(unit, "PerPacket", DoubleValue(seconds));
        router.SetTaskUnitAttribute(unit, "Priority", IntegerValue(priority));
    }
    router.SetEntry("bulk", 0);
    router.SetEntry("urgent", 1);
    const auto resources = router.Install(chain.Router());
    Seen seen;
    std::printf("%s\n", name.c_str());
    resources->GetManager()->TraceConnectWithoutContext(
        "Message",
        Callback<void, Time, ResourceMessage, const std::string&, const std::string&, uint32_t, Ptr<const Packet>>(
            [&seen](Time at,
                    ResourceMessage message,
                    const std::string& unit,
                    const std::string&,
                    uint32_t,
                    Ptr<const Packet>) {
                seen.kinds[message]++;
                if (seen.messages++ < 10)
                {
                    std::printf("  %10.3f us  %s  %s\n", at.GetNanoSeconds() * 1e-3, GetName(message), unit.c_str());
                }
            }));
    resources->TraceConnectWithoutContext(
        "Sojourn",
        Callback<void, Ptr<const Packet>, Time>([&seen](Ptr<const Packet> packet, Time sojourn) {
            auto& own = seen.sojourns[packet->GetSize() > 200 ? "bulk" : "urgent"];
            own.first += sojourn.GetSeconds();
            own.second++;
        }));
    chain.Send(0, 9, 1000, MicroSeconds(31), MilliSeconds(1));
    chain.Send(1, 9, 64, MicroSeconds(23), MilliSeconds(1) + MicroSeconds(7));
    Simulator::Stop(MilliSeconds(101));
    Simulator::Run();
    std::printf("  … %d REQ, %d REP, %d REL, %d REV; mean sojourn: urgent %.2f us, bulk %.2f us\n",
                seen.kinds[ResourceMessage::REQ],
                seen.kinds[ResourceMessage::REP],
                seen.kinds[ResourceMessage::REL],
                seen.kinds[ResourceMessage::REV],
                1e6 * seen.sojourns["urgent"].first / seen.sojourns["urgent"].second,
                1e6 * seen.sojourns["bulk"].first / seen.sojourns["bulk"].second);
    return seen;
}

} // namespace

int
main(int argc, char* argv[])
{
    bool isChecked = false;
    CommandLine cmd(__FILE__);
    cmd.AddValue("check", "Leave with 1 unless urgent packets wait for nobody where units are revoked.", isChecked);
    cmd.Parse(argc, argv);
    Seen waits = Simulate(ResourcePool::PRIORITY, "Priority: nothing is revoked");
    Seen revokes = Simulate(ResourcePool::PREEMPTIVE, "Preemptive: the urgent revoke");
    const auto& urgent = revokes.sojourns["urgent"];
    const bool isMet = waits.kinds[ResourceMessage::REV] == 0 && revokes.kinds[ResourceMessage::REV] > 0 &&
                       urgent.first / urgent.second < 2.001e-6;
    return isMet || !isChecked ? 0 : 1;
}
