/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "ns3/applications-module.h"
#include "ns3/basic-energy-source-helper.h"
#include "ns3/core-module.h"
#include "ns3/csma-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/resource-energy-model.h"
#include "ns3/resource-helper.h"
#include "ns3/router-resources-compat.h"
#include "ns3/simple-device-energy-model.h"
#include "ns3/traffic-control-module.h"

#include <array>
#include <functional>
#include <map>
#include <numeric>

using namespace ns3;

namespace
{

/// Two hosts and a router between them.
class Topology
{
  public:
    /**
     * \param isCsma CSMA instead of point-to-point
     * \param gbps rate of the links [Gbit/s]
     */
    explicit Topology(bool isCsma = false, double gbps = 10.0)
    {
        nodes.Create(3);
        const auto rate = DataRateValue(DataRate(static_cast<uint64_t>(gbps * 1e9)));
        if (isCsma)
        {
            CsmaHelper link;
            link.SetChannelAttribute("DataRate", rate);
            link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(10)));
            left = link.Install(NodeContainer(nodes.Get(0), nodes.Get(1)));
            right = link.Install(NodeContainer(nodes.Get(1), nodes.Get(2)));
        }
        else
        {
            PointToPointHelper link;
            link.SetDeviceAttribute("DataRate", rate);
            left = link.Install(nodes.Get(0), nodes.Get(1));
            right = link.Install(nodes.Get(1), nodes.Get(2));
        }
        InternetStackHelper().Install(nodes);
        Ipv4AddressHelper address("10.0.1.0", "255.255.255.0");
        leftAddress = address.Assign(left);
        address.SetBase("10.0.2.0", "255.255.255.0");
        rightAddress = address.Assign(right);
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        nodes.Get(1)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("Rx",
                                                                              MakeCallback(&Topology::CountL3, this));
    }

    ~Topology()
    {
        Simulator::Destroy();
    }

    /**
     * Send packets of UDP from the first host to the second, at equal gaps.
     * \param count how many
     * \param gap time between two
     * \param payload bytes of each
     * \param start time of the first
     * \param port destination port
     */
    void Send(uint32_t count, Time gap, uint32_t payload = 100, Time start = Seconds(1), uint16_t port = 9)
    {
        if (sinks.find(port) == sinks.end())
        {
            PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
            sinks[port] = DynamicCast<PacketSink>(sink.Install(nodes.Get(2)).Get(0));
        }
        UdpClientHelper client(rightAddress.GetAddress(1), port);
        client.SetAttribute("MaxPackets", UintegerValue(count));
        client.SetAttribute("Interval", TimeValue(gap));
        client.SetAttribute("PacketSize", UintegerValue(payload));
        client.Install(nodes.Get(0)).Start(start);
    }

    /**
     * Send packets of UDP from the second host to the first, at equal gaps.
     * \param count how many
     * \param gap time between two
     * \param payload bytes of each
     * \param start time of the first
     */
    void SendBack(uint32_t count, Time gap, uint32_t payload, Time start)
    {
        PacketSinkHelper("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9)).Install(nodes.Get(0));
        UdpClientHelper client(leftAddress.GetAddress(0), 9);
        client.SetAttribute("MaxPackets", UintegerValue(count));
        client.SetAttribute("Interval", TimeValue(gap));
        client.SetAttribute("PacketSize", UintegerValue(payload));
        client.Install(nodes.Get(2)).Start(start);
    }

    /**
     * Watch the messages of a router.
     * \param router the router
     */
    void Watch(Ptr<RouterResources> router)
    {
        router->GetManager()->TraceConnectWithoutContext("Message", MakeCallback(&Topology::Keep, this));
        router->TraceConnectWithoutContext("Sojourn", MakeCallback(&Topology::KeepSojourn, this));
    }

    /**
     * \param port a destination port
     * \param payload bytes of a packet
     * \return packets that arrived
     */
    uint64_t Received(uint16_t port = 9, uint32_t payload = 100)
    {
        return sinks[port]->GetTotalRx() / payload;
    }

    /// Counts a packet that IPv4 of the router receives.
    void CountL3(Ptr<const Packet>, Ptr<Ipv4>, uint32_t)
    {
        atL3++;
    }

    /**
     * Keeps a message.
     * \param time when
     * \param message its kind
     * \param unit whose
     * \param pool name of the pool
     * \param number of the unit
     * \param packet what it is about
     */
    void Keep(Time time,
              ResourceMessage message,
              const std::string& unit,
              const std::string& pool,
              uint32_t number,
              Ptr<const Packet> packet)
    {
        times.push_back(time);
        messages.push_back(std::string(GetName(message)) + " " + unit + " " + pool +
                           (number == ResourceManager::NO_UNIT ? "" : " " + std::to_string(number)));
        withPacket += packet ? 1 : 0;
    }

    /**
     * Keeps a sojourn time.
     * \param sojourn the time
     */
    void KeepSojourn(Ptr<const Packet>, Time sojourn)
    {
        sojourns.push_back(sojourn);
    }

    NodeContainer nodes;                          //!< Host, router, host.
    NetDeviceContainer left;                      //!< Devices of the first link.
    NetDeviceContainer right;                     //!< Devices of the second link.
    Ipv4InterfaceContainer leftAddress;           //!< Their addresses.
    Ipv4InterfaceContainer rightAddress;          //!< Their addresses.
    std::map<uint16_t, Ptr<PacketSink>> sinks;    //!< By port.
    uint64_t atL3{0};                             //!< Packets that IPv4 of the router received.
    std::vector<Time> times;                      //!< When messages were sent.
    std::vector<std::string> messages;            //!< Messages.
    uint64_t withPacket{0};                       //!< Messages about a packet.
    std::vector<Time> sojourns;                   //!< Sojourn times.
};

/**
 * \param seconds cost of a packet
 * \param queue packets that can wait
 * \return a router with one core
 */
ResourceHelper
OneCore(double seconds, uint32_t queue = 512)
{
    ResourceHelper helper;
    helper.AddPool("cpu", 1);
    helper.AddTaskUnit("core");
    helper.AddNeed("core", "cpu");
    helper.SetTaskUnitAttribute("core", "PerPacket", DoubleValue(seconds));
    helper.SetTaskUnitAttribute("core", "QueueSize", UintegerValue(queue));
    return helper;
}

} // namespace

/**
 * \ingroup router-resources-tests
 * Every packet passes once: those that IP receives are those that were served, on each kind of link.
 */
class PassOnceTestCase : public TestCase
{
  public:
    PassOnceTestCase()
        : TestCase("packets at L3 are packets served")
    {
    }

  private:
    void DoRun() override
    {
        for (const bool isCsma : {false, true})
        {
            Topology net(isCsma);
            auto router = OneCore(1e-6).Install(net.nodes.Get(1));
            net.Send(1, Seconds(1), 100, MilliSeconds(500)); // by then addresses are resolved
            net.Send(1000, MicroSeconds(2));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ(net.Received(), 1001, "all arrive");
            NS_TEST_EXPECT_MSG_EQ(router->GetForwarded(), 1001, "all were served");
            NS_TEST_EXPECT_MSG_EQ(net.atL3, router->GetForwarded(), "and passed IP once");
            NS_TEST_EXPECT_MSG_EQ(router->GetInside(), 0, "none is left");
        }
    }
};

/**
 * \ingroup router-resources-tests
 * D/D/1: below saturation nobody waits, above it the queue fills and the rest is lost; nothing gets lost on the way.
 */
class OneServerTestCase : public TestCase
{
  public:
    OneServerTestCase()
        : TestCase("a core of its own is a queue D-D-1, and packets are conserved in overload")
    {
    }

  private:
    void DoRun() override
    {
        {
            Topology net;
            auto helper = OneCore(1e-6);
            helper.SetTaskUnitAttribute("core", "PerByte", DoubleValue(1e-9));
            auto router = helper.Install(net.nodes.Get(1));
            net.Watch(router);
            net.Send(100, MicroSeconds(2));
            Simulator::Run();
            // Eq. 3: T_c + S T_d, where S is 100 bytes of payload, 28 of headers, 18 of Ethernet.
            for (const Time& sojourn : net.sojourns)
            {
                NS_TEST_EXPECT_MSG_EQ(sojourn, NanoSeconds(1146), "nobody waits");
            }
            NS_TEST_EXPECT_MSG_EQ(net.sojourns.size(), 100, "each was served");
        }
        {
            Topology net;
            auto router = OneCore(10e-6, 20).Install(net.nodes.Get(1));
            net.Watch(router);
            net.Send(1000, MicroSeconds(1));
            Simulator::Stop(Seconds(1) + MicroSeconds(900));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ(router->GetOffered(),
                                  router->GetForwarded() + router->GetDropped() + router->GetInside(),
                                  "packets are conserved");
            NS_TEST_EXPECT_MSG_EQ(router->GetInside(), 21, "the queue is full, and one is served");
            // 20 wait in front of one that comes, less what of the service under way is over.
            NS_TEST_EXPECT_MSG_EQ_TOL(net.sojourns.back().GetMicroSeconds(), 205, 6, "eq. 4: N over the rate");
            NS_TEST_EXPECT_MSG_EQ_TOL(router->GetForwarded(), 89, 1, "a packet each 10 us");
        }
    }
};

/**
 * \ingroup router-resources-tests
 * The messages of two task units at one core, one more urgent than the other.
 */
class MessagesTestCase : public TestCase
{
  public:
    MessagesTestCase()
        : TestCase("REQ, REP, REL, and REV where the pool is preemptive")
    {
    }

  private:
    /**
     * \param policy policy of the pool
     * \return messages, without their times
     */
    std::vector<std::string> MessagesOf(ResourcePool::Policy policy)
    {
        Topology net;
        ResourceHelper helper;
        helper.AddPool("cpu", 1);
        helper.SetPoolAttribute("cpu", "Policy", EnumValue(policy));
        for (const std::string name : {"low", "high"})
        {
            helper.AddTaskUnit(name);
            helper.AddNeed(name, "cpu");
            helper.SetTaskUnitAttribute(name, "PerPacket", DoubleValue(name == "low" ? 10e-6 : 2e-6));
            helper.SetTaskUnitAttribute(name, "Priority", IntegerValue(name == "low" ? 0 : 1));
        }
        helper.SetEntry("low", 0);
        helper.SetEntry("high", 1);
        auto router = helper.Install(net.nodes.Get(1));
        net.Watch(router);
        net.Send(1, Seconds(1));
        // The other way, into the service of the first.
        PacketSinkHelper("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9)).Install(net.nodes.Get(0));
        UdpClientHelper back(net.leftAddress.GetAddress(0), 9);
        back.SetAttribute("MaxPackets", UintegerValue(1));
        back.SetAttribute("PacketSize", UintegerValue(100));
        back.Install(net.nodes.Get(2)).Start(Seconds(1) + MicroSeconds(4));
        Simulator::Run();
        NS_TEST_EXPECT_MSG_EQ(net.withPacket, net.messages.size(), "every message names its packet");
        NS_TEST_EXPECT_MSG_EQ(net.sojourns.size(), 2, "both are served");
        if (policy == ResourcePool::PREEMPTIVE)
        {
            NS_TEST_EXPECT_MSG_EQ(net.sojourns[0], MicroSeconds(2), "the urgent one waits for nobody");
            NS_TEST_EXPECT_MSG_EQ(net.sojourns[1], MicroSeconds(12), "the other one goes on where it was");
        }
        return net.messages;
    }

    void DoRun() override
    {
        const std::vector<std::string> preemptive{"REQ low cpu",
                                                  "REP low cpu 0",
                                                  "REQ high cpu",
                                                  "REV low cpu 0",
                                                  "REP high cpu 0",
                                                  "REL high cpu 0",
                                                  "REP low cpu 0",
                                                  "REL low cpu 0"};
        const std::vector<std::string> fifo{"REQ low cpu",
                                            "REP low cpu 0",
                                            "REQ high cpu",
                                            "REL low cpu 0",
                                            "REP high cpu 0",
                                            "REL high cpu 0"};
        NS_TEST_EXPECT_MSG_EQ((MessagesOf(ResourcePool::PREEMPTIVE) == preemptive), true, "a unit is revoked");
        NS_TEST_EXPECT_MSG_EQ((MessagesOf(ResourcePool::FIFO) == fifo), true, "nothing is revoked");
        NS_TEST_EXPECT_MSG_EQ((MessagesOf(ResourcePool::PRIORITY) == fifo), true, "nothing is revoked");
    }
};

/**
 * \ingroup router-resources-tests
 * Fewer cores than task units: time is divided as the policy says.
 */
class SharesTestCase : public TestCase
{
  public:
    SharesTestCase()
        : TestCase("task units that share a core get what its policy gives them")
    {
    }

  private:
    /**
     * \param policy policy of the pool
     * \param quantum longest grant
     * \return packets served by either task unit, the first of which has weight 3
     */
    std::pair<uint64_t, uint64_t> ServedUnder(ResourcePool::Policy policy, Time quantum)
    {
        Topology net;
        ResourceHelper helper;
        helper.AddPool("cpu", 1);
        helper.SetPoolAttribute("cpu", "Policy", EnumValue(policy));
        helper.SetPoolAttribute("cpu", "Quantum", TimeValue(quantum));
        helper.AddTaskUnit("spread");
        helper.SetRoute("spread", TaskUnit::ROUND_ROBIN, {"a", "b"});
        for (const std::string name : {"a", "b"})
        {
            helper.AddTaskUnit(name);
            helper.AddNeed(name, "cpu");
            helper.SetTaskUnitAttribute(name, "PerPacket", DoubleValue(10e-6));
            helper.SetTaskUnitAttribute(name, "Weight", DoubleValue(name == "a" ? 3.0 : 1.0));
            helper.SetTaskUnitAttribute(name, "Priority", IntegerValue(name == "a" ? 1 : 0));
        }
        auto router = helper.Install(net.nodes.Get(1));
        net.Send(100000, MicroSeconds(1));
        Simulator::Stop(Seconds(1) + MilliSeconds(40));
        Simulator::Run();
        NS_TEST_EXPECT_MSG_EQ(router->GetOffered(),
                              router->GetForwarded() + router->GetDropped() + router->GetInside(),
                              "packets are conserved");
        NS_TEST_EXPECT_MSG_EQ_TOL(router->GetForwarded(), 4000, 10, "the core is always at work");
        return {router->GetTaskUnit("a")->GetServed(), router->GetTaskUnit("b")->GetServed()};
    }

    void DoRun() override
    {
        const auto fifo = ServedUnder(ResourcePool::FIFO, Time(0));
        NS_TEST_EXPECT_MSG_EQ_TOL(fifo.first, fifo.second, 2, "in turn");
        const auto turns = ServedUnder(ResourcePool::ROUND_ROBIN, MicroSeconds(3));
        NS_TEST_EXPECT_MSG_EQ_TOL(turns.first, turns.second, 2, "in turn, in slices of a service");
        const auto fair = ServedUnder(ResourcePool::FAIR, MicroSeconds(25));
        NS_TEST_EXPECT_MSG_EQ_TOL(double(fair.first) / fair.second, 3.0, 0.1, "by weight");
        const auto priority = ServedUnder(ResourcePool::PRIORITY, Time(0));
        NS_TEST_EXPECT_MSG_EQ((priority.second <= 1), true, "the urgent one never leaves it to the other");
        const auto preemptive = ServedUnder(ResourcePool::PREEMPTIVE, Time(0));
        NS_TEST_EXPECT_MSG_EQ((preemptive.second <= 1), true, "the urgent one never leaves it to the other");
    }
};

/**
 * \ingroup router-resources-tests
 * Contention: with k units at work each takes c(k) times as long.
 */
class ContentionTestCase : public TestCase
{
  public:
    ContentionTestCase()
        : TestCase("units that work together slow each other down by their table")
    {
    }

  private:
    void DoRun() override
    {
        for (uint32_t cores = 1; cores <= 3; cores++)
        {
            Topology net;
            ResourceHelper helper;
            const std::vector<double> factors{1.0, 1.25, 2.0};
            helper.AddPool("cpu", 3, factors);
            helper.AddTaskUnit("spread");
            std::vector<std::string> names;
            for (uint32_t core = 0; core < cores; core++)
            {
                names.push_back("core " + std::to_string(core));
                helper.AddTaskUnit(names.back());
                helper.AddNeed(names.back(), "cpu");
                helper.SetTaskUnitAttribute(names.back(), "PerPacket", DoubleValue(10e-6));
            }
            helper.SetRoute("spread", TaskUnit::ROUND_ROBIN, names);
            auto router = helper.Install(net.nodes.Get(1));
            net.Send(100000, MicroSeconds(1));
            Simulator::Stop(Seconds(1) + MilliSeconds(20));
            Simulator::Run();
            const double expected = 0.02 * cores / (10e-6 * factors[cores - 1]);
            NS_TEST_EXPECT_MSG_EQ_TOL(double(router->GetForwarded()), expected, 5.0, "k units do k / c(k)");
        }
    }
};

/**
 * \ingroup router-resources-tests
 * Units of several pools at once: all or none, so that two task units with opposite needs never lock each other out.
 */
class TwoPoolsTestCase : public TestCase
{
  public:
    TwoPoolsTestCase()
        : TestCase("a grant of several pools is atomic, in the order of the pools")
    {
    }

  private:
    void DoRun() override
    {
        Topology net;
        ResourceHelper helper;
        helper.AddPool("cpu", 2);
        helper.AddPool("memory", 1);
        helper.AddTaskUnit("spread");
        helper.SetRoute("spread", TaskUnit::ROUND_ROBIN, {"a", "b"});
        for (const std::string name : {"a", "b"})
        {
            helper.AddTaskUnit(name);
            helper.AddNeed(name, name == "a" ? "cpu" : "memory");
            helper.AddNeed(name, name == "a" ? "memory" : "cpu");
            helper.SetTaskUnitAttribute(name, "PerPacket", DoubleValue(4e-6));
        }
        auto router = helper.Install(net.nodes.Get(1));
        net.Watch(router);
        net.Send(4, MicroSeconds(1));
        Simulator::Run();
        NS_TEST_EXPECT_MSG_EQ(router->GetForwarded(), 4, "all pass");
        for (std::size_t i = 0; i < net.messages.size(); i++)
        {
            // A packet's REPs come together, the pool that was added first before the other.
            if (net.messages[i].find("REP") == 0 && net.messages[i].find("cpu") != std::string::npos)
            {
                NS_TEST_EXPECT_MSG_EQ((net.messages.at(i + 1).find("REP") == 0 &&
                                       net.messages[i + 1].find("memory") != std::string::npos &&
                                       net.times[i] == net.times[i + 1]),
                                      true,
                                      net.messages[i]);
            }
        }
        // The memory serves one at a time: 16 us from the first grant to the last release.
        NS_TEST_EXPECT_MSG_EQ(net.times.back() - net.times.front(), MicroSeconds(16), "one after the other");
    }
};

/**
 * \ingroup router-resources-tests
 * Linux NAPI: few interrupts under load, one for each packet without; batches share their cost.
 */
class ActivationTestCase : public TestCase
{
  public:
    ActivationTestCase()
        : TestCase("interrupts, moderation, polling and batches")
    {
    }

  private:
    void DoRun() override
    {
        const auto napi = [](Time moderation) {
            auto helper = OneCore(1e-6);
            helper.SetTaskUnitAttribute("core", "Activation", EnumValue(TaskUnit::INTERRUPT));
            helper.SetTaskUnitAttribute("core", "InterruptCost", DoubleValue(2e-6));
            helper.SetTaskUnitAttribute("core", "Moderation", TimeValue(moderation));
            helper.SetTaskUnitAttribute("core", "Budget", UintegerValue(64));
            return helper;
        };
        {
            Topology net;
            auto router = napi(Time(0)).Install(net.nodes.Get(1));
            net.Watch(router);
            net.Send(100, MicroSeconds(50));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ(router->GetTaskUnit("core")->GetInterrupts(), 100, "one for each packet");
            NS_TEST_EXPECT_MSG_EQ(net.sojourns.back(), MicroSeconds(3), "interrupt and service");
        }
        {
            Topology net;
            auto router = napi(MicroSeconds(500)).Install(net.nodes.Get(1));
            net.Send(100, MicroSeconds(50));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ_TOL(router->GetTaskUnit("core")->GetInterrupts(), 11, 1, "one each 500 us");
            NS_TEST_EXPECT_MSG_EQ(net.Received(), 100, "all arrive");
        }
        {
            Topology net;
            auto router = napi(Time(0)).Install(net.nodes.Get(1));
            net.Send(20000, NanoSeconds(500));
            Simulator::Run();
            // 4 packets come during an interrupt, 2 n during a poll of n: 4, 12, 28, 60, then more than the budget.
            NS_TEST_EXPECT_MSG_EQ(router->GetTaskUnit("core")->GetInterrupts(), 5, "an overloaded core polls");
        }
        {
            // Interrupts of 4 us, a packet each 3 us: the one that comes during an interrupt is in its poll.
            // At 0, 3, 9, 12 … leave at 5, 6, 14, 15 …: 5 and 3 us.
            Topology net;
            auto helper = OneCore(1e-6);
            helper.SetTaskUnitAttribute("core", "Activation", EnumValue(TaskUnit::INTERRUPT));
            helper.SetTaskUnitAttribute("core", "InterruptCost", DoubleValue(4e-6));
            auto router = helper.Install(net.nodes.Get(1));
            net.Watch(router);
            net.Send(100, MicroSeconds(3));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ(net.sojourns.front(), MicroSeconds(5), "interrupt and service");
            NS_TEST_EXPECT_MSG_EQ(net.sojourns.at(1), MicroSeconds(3), "it came during the interrupt");
        }
        {
            // 32 packets share 8 us: 1.25 us each instead of 9.
            Topology net;
            auto helper = OneCore(1e-6);
            helper.SetTaskUnitAttribute("core", "PerBatch", DoubleValue(8e-6));
            helper.SetTaskUnitAttribute("core", "Batch", UintegerValue(32));
            auto router = helper.Install(net.nodes.Get(1));
            net.Send(100000, NanoSeconds(500));
            Simulator::Stop(Seconds(1) + MilliSeconds(10));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ_TOL(double(router->GetForwarded()), 8000, 40, "batches share what opens them");
        }
        {
            Topology net;
            auto helper = OneCore(1e-6);
            helper.SetTaskUnitAttribute("core", "Activation", EnumValue(TaskUnit::POLLING));
            helper.SetPoolAttribute("cpu", "ActivePower", DoubleValue(10.0));
            helper.SetPoolAttribute("cpu", "IdlePower", DoubleValue(1.0));
            auto router = helper.Install(net.nodes.Get(1));
            net.Watch(router);
            net.Send(100, MicroSeconds(50));
            Simulator::Stop(Seconds(2));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ(net.messages.size(), 2, "asked once, was granted, and never gave back");
            NS_TEST_EXPECT_MSG_EQ(net.Received(), 100, "all arrive");
            auto pool = router->GetManager()->GetPool(0);
            NS_TEST_EXPECT_MSG_EQ_TOL(pool->GetEnergy(), 20.0, 1e-9, "active all the time");
        }
    }
};

/**
 * \ingroup router-resources-tests
 * Energy is power over time by state, and time held is work.
 */
class EnergyTestCase : public TestCase
{
  public:
    EnergyTestCase()
        : TestCase("energy of a pool by state")
    {
    }

  private:
    void DoRun() override
    {
        Topology net;
        auto helper = OneCore(100e-6);
        helper.SetPoolAttribute("cpu", "ActivePower", DoubleValue(11.0));
        helper.SetPoolAttribute("cpu", "IdlePower", DoubleValue(1.0));
        helper.SetPoolAttribute("cpu", "BasePower", DoubleValue(5.0));
        auto router = helper.Install(net.nodes.Get(1));
        net.Send(1000, MicroSeconds(200));
        Simulator::Stop(Seconds(2));
        Simulator::Run();
        auto pool = router->GetManager()->GetPool(0);
        NS_TEST_EXPECT_MSG_EQ(pool->GetHeldTime(), MilliSeconds(100), "1000 packets of 100 us");
        NS_TEST_EXPECT_MSG_EQ_TOL(pool->GetEnergy(), 2 * (5.0 + 1.0) + 0.1 * 10.0, 1e-9, "base, idle and active");
    }
};

/**
 * \ingroup router-resources-tests
 * Pools draw from an energy source of ns-3 beside another device; without energy nothing is taken.
 */
class EnergySourceTestCase : public TestCase
{
  public:
    EnergySourceTestCase()
        : TestCase("pools and another device on one energy source")
    {
    }

  private:
    void DoRun() override
    {
        for (const double joules : {100.0, 6.0})
        {
            Topology net;
            auto helper = OneCore(100e-6);
            helper.SetPoolAttribute("cpu", "ActivePower", DoubleValue(11.0));
            helper.SetPoolAttribute("cpu", "IdlePower", DoubleValue(1.0));
            auto router = helper.Install(net.nodes.Get(1));
            BasicEnergySourceHelper energy;
            energy.Set("BasicEnergySourceInitialEnergyJ", DoubleValue(joules));
            energy.Set("BasicEnergyLowBatteryThreshold", DoubleValue(0.01));
            auto source = energy.Install(net.nodes.Get(1)).Get(0);
            auto lamp = CreateObject<SimpleDeviceEnergyModel>();
            lamp->SetEnergySource(source);
            source->AppendDeviceEnergyModel(lamp);
            lamp->SetCurrentA(2.0 / source->GetSupplyVoltage());
            source->TraceConnectWithoutContext("RemainingEnergy",
                                               Callback<void, double, double>([lamp, joules](double, double left) {
                                                   if (left < 0.01 * joules)
                                                   {
                                                       Simulator::ScheduleNow(&SimpleDeviceEnergyModel::SetCurrentA, lamp, 0.0);
                                                   }
                                               }));
            auto core = ResourceEnergyModel::Install(router, source);
            net.Send(5000, MicroSeconds(200)); // a second, busy for half of it
            Simulator::Stop(Seconds(3));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ(router->GetOffered(), 5000, "all came");
            if (joules > 10.0)
            {
                // Three seconds of lamp and idle core, and half a second of 10 W more.
                NS_TEST_EXPECT_MSG_EQ_TOL(source->GetRemainingEnergy(), joules - 3 * (2.0 + 1.0) - 0.5 * 10.0, 1e-9, "exact");
                NS_TEST_EXPECT_MSG_EQ_TOL(core->GetTotalEnergyConsumption(), 3.0 + 5.0, 1e-9, "the core's part");
                NS_TEST_EXPECT_MSG_EQ(router->GetForwarded(), 5000, "all were served");
            }
            else
            {
                // 3 J go in the first second; 8 W take the rest, down to 1 %, in 2.94/8 s, which is 1837 packets.
                NS_TEST_EXPECT_MSG_EQ_TOL(router->GetForwarded(), 1838, 1, "until the source was empty");
                NS_TEST_EXPECT_MSG_EQ_TOL(core->GetTotalEnergyConsumption(), 1.0 + 0.3675 * 6.0, 2e-3, "and draws no more");
                NS_TEST_EXPECT_MSG_EQ(router->GetForwarded() + router->GetDropped(), 5000, "the others were dropped");
            }
        }
    }
};

/**
 * \ingroup router-resources-tests
 * A queue disc behind the module and a capture of its ports see what it forwarded.
 */
class QueueDiscTestCase : public TestCase
{
  public:
    QueueDiscTestCase()
        : TestCase("queue discs and captures behind the module")
    {
    }

  private:
    void DoRun() override
    {
        const std::string name = CreateTempDirFilename("out");
        uint64_t received = 0;
        {
            // The core forwards 100 Mbit/s to a link of 10: a disc of 50 packets drops what it cannot hold, and the module none.
            Topology net(false, 0.01);
            net.left.Get(0)->SetAttribute("DataRate", StringValue("1Gbps"));
            net.right.Get(0)->GetObject<PointToPointNetDevice>()->GetQueue()->SetMaxSize(QueueSize("1p"));
            TrafficControlHelper control;
            control.Uninstall(net.right.Get(0));
            control.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("50p"));
            auto disc = control.Install(net.right.Get(0)).Get(0);
            auto router = OneCore(1e-6).Install(net.nodes.Get(1));
            PointToPointHelper().EnablePcap(name, net.right.Get(0), false, true);
            net.Send(500, MicroSeconds(20));
            Simulator::Run();
            const auto stats = disc->GetStats();
            NS_TEST_EXPECT_MSG_EQ(router->GetForwarded(), 500, "the module serves all");
            NS_TEST_EXPECT_MSG_EQ(stats.nTotalReceivedPackets, 500, "and all come to the disc");
            NS_TEST_EXPECT_MSG_EQ((stats.nTotalDroppedPackets > 300), true, "which drops most");
            NS_TEST_EXPECT_MSG_EQ(net.Received() + stats.nTotalDroppedPackets, 500, "and nobody else drops any");
            received = net.Received();
        }
        // Written to its end now that the port is gone.
        PcapFile capture;
        capture.Open(name, std::ios::in);
        uint64_t captured = 0;
        std::array<uint8_t, 2048> bytes{};
        uint32_t seconds = 0;
        uint32_t fraction = 0;
        uint32_t included = 0;
        uint32_t original = 0;
        uint32_t read = 0;
        for (capture.Read(bytes.data(), bytes.size(), seconds, fraction, included, original, read); !capture.Eof();
             capture.Read(bytes.data(), bytes.size(), seconds, fraction, included, original, read))
        {
            captured++;
        }
        NS_TEST_EXPECT_MSG_EQ(captured, received, "the capture of the port holds what arrived");
    }
};

/**
 * \ingroup router-resources-tests
 * Eq. 4: in overload the mean sojourn time is the mean number of packets inside over the rate of those accepted, both from
 * counters that are sampled.
 */
class SampledCountersTestCase : public TestCase
{
  public:
    SampledCountersTestCase()
        : TestCase("eq. 4 from sampled counters, in overload")
    {
    }

  private:
    void DoRun() override
    {
        Topology net;
        ResourceHelper helper;
        helper.AddPool("cpu", 2, {1.0, 1.3});
        helper.AddReceiveSideScaling("cpu", 2, 8e-6);
        for (const std::string unit : {"core 0", "core 1"})
        {
            helper.SetTaskUnitAttribute(unit, "QueueSize", UintegerValue(64));
        }
        auto router = helper.Install(net.nodes.Get(1));
        net.Watch(router);
        for (uint16_t flow = 0; flow < 8; flow++)
        {
            net.Send(20000, MicroSeconds(20), 100, Seconds(1) + NanoSeconds(1300 * flow), 1000 + flow);
        }
        double inside = 0.0;
        uint64_t samples = 0;
        uint64_t servedBefore = 0;
        std::size_t sojournsBefore = 0;
        std::function<void()> sample = [&] {
            inside += router->GetInside();
            samples++;
            Simulator::Schedule(MicroSeconds(37), [&] { sample(); });
        };
        Simulator::Schedule(Seconds(1) + MilliSeconds(50), [&] {
            servedBefore = router->GetForwarded();
            sojournsBefore = net.sojourns.size();
            sample();
        });
        Simulator::Stop(Seconds(1) + MilliSeconds(350));
        Simulator::Run();
        const double rate = (router->GetForwarded() - servedBefore) / 0.3;
        Time sum;
        for (std::size_t i = sojournsBefore; i < net.sojourns.size(); i++)
        {
            sum += net.sojourns[i];
        }
        const double mean = sum.GetSeconds() / (net.sojourns.size() - sojournsBefore);
        NS_TEST_EXPECT_MSG_EQ((router->GetDropped() > 10000), true, "overloaded");
        NS_TEST_EXPECT_MSG_EQ_TOL(inside / samples / rate / mean, 1.0, 0.005, "N over lambda+ is T");
    }
};

/**
 * \ingroup router-resources-tests
 * Which packets take resources; TCP, ARP, IPv6 and its neighbour discovery work through the router.
 */
class StackTestCase : public TestCase
{
  public:
    StackTestCase()
        : TestCase("TCP, ARP, IPv6, ICMP, and which packets take resources")
    {
    }

  private:
    void DoRun() override
    {
        {
            // A transfer of TCP through two constrained routers; what goes to the nodes themselves passes by.
            Topology net(true, 0.1);
            auto router = OneCore(20e-6).Install(net.nodes.Get(1));
            BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(net.rightAddress.GetAddress(1), 80));
            bulk.SetAttribute("MaxBytes", UintegerValue(1000000));
            bulk.Install(net.nodes.Get(0)).Start(Seconds(1));
            PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 80));
            auto server = DynamicCast<PacketSink>(sink.Install(net.nodes.Get(2)).Get(0));
            Simulator::Stop(Seconds(30));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ(server->GetTotalRx(), 1000000, "the whole file");
            NS_TEST_EXPECT_MSG_EQ(net.atL3, router->GetForwarded(), "every segment was served, once");
            NS_TEST_EXPECT_MSG_EQ((router->GetPassedBy() > 0), true, "ARP passed by");
        }
        for (const bool takesDelivered : {false, true})
        {
            Topology net(true);
            auto helper = OneCore(1e-6);
            helper.SetAttribute("Delivered", BooleanValue(takesDelivered));
            helper.SetAttribute("Arp", BooleanValue(takesDelivered));
            auto router = helper.Install(net.nodes.Get(1));
            PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
            auto local = DynamicCast<PacketSink>(sink.Install(net.nodes.Get(1)).Get(0));
            UdpClientHelper client(net.leftAddress.GetAddress(1), 9);
            client.SetAttribute("MaxPackets", UintegerValue(10));
            client.SetAttribute("PacketSize", UintegerValue(100));
            client.Install(net.nodes.Get(0)).Start(Seconds(1));
            Simulator::Stop(Seconds(20));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ(local->GetTotalRx(), 1000, "all ten");
            NS_TEST_EXPECT_MSG_EQ(net.atL3, 10, "packets to the node reach it once");
            NS_TEST_EXPECT_MSG_EQ((router->GetForwarded() >= 11), takesDelivered, "and take its core if asked to");
        }
        {
            NodeContainer nodes;
            nodes.Create(3);
            CsmaHelper link;
            link.SetChannelAttribute("DataRate", StringValue("1Gbps"));
            auto left = link.Install(NodeContainer(nodes.Get(0), nodes.Get(1)));
            auto right = link.Install(NodeContainer(nodes.Get(1), nodes.Get(2)));
            InternetStackHelper().Install(nodes);
            Ipv6AddressHelper address;
            address.SetBase("2001:1::", Ipv6Prefix(64));
            auto leftAddress = address.Assign(left);
            address.SetBase("2001:2::", Ipv6Prefix(64));
            auto rightAddress = address.Assign(right);
            leftAddress.SetForwarding(1, true);
            leftAddress.SetDefaultRouteInAllNodes(1);
            rightAddress.SetForwarding(0, true);
            rightAddress.SetDefaultRouteInAllNodes(0);
            auto router = OneCore(1e-6).Install(nodes.Get(1));
            PacketSinkHelper sink("ns3::UdpSocketFactory", Inet6SocketAddress(Ipv6Address::GetAny(), 9));
            auto there = DynamicCast<PacketSink>(sink.Install(nodes.Get(2)).Get(0));
            UdpClientHelper client(rightAddress.GetAddress(1, 1), 9);
            client.SetAttribute("MaxPackets", UintegerValue(10));
            client.SetAttribute("PacketSize", UintegerValue(100));
            client.Install(nodes.Get(0)).Start(Seconds(3));
            Simulator::Stop(Seconds(20));
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ(there->GetTotalRx(), 1000, "all ten, over IPv6");
            NS_TEST_EXPECT_MSG_EQ(router->GetForwarded(), 10, "each was served");
            NS_TEST_EXPECT_MSG_EQ((router->GetPassedBy() > 0), true, "neighbour discovery passed by");
            Simulator::Destroy();
        }
    }
};

/**
 * \ingroup router-resources-tests
 * The Toeplitz hash of Microsoft's "Verifying the RSS hash calculation", and that packets are led by it.
 */
class RssTestCase : public TestCase
{
  public:
    RssTestCase()
        : TestCase("receive-side scaling by Toeplitz")
    {
    }

  private:
    void DoRun() override
    {
        const auto hash = [](const char* from, uint16_t fromPort, const char* to, uint16_t toPort) {
            return RouterResources::GetFlowHash(Ipv4Address(from), Ipv4Address(to), fromPort, toPort);
        };
        NS_TEST_EXPECT_MSG_EQ(hash("66.9.149.187", 2794, "161.142.100.80", 1766), 0x51ccc178, "IPv4 with ports");
        NS_TEST_EXPECT_MSG_EQ(hash("199.92.111.2", 14230, "65.69.140.83", 4739), 0xc626b0ea, "IPv4 with ports");
        NS_TEST_EXPECT_MSG_EQ(hash("24.19.198.95", 12898, "12.22.207.184", 38024), 0x5c2b394a, "IPv4 with ports");

        auto packet = Create<Packet>(10);
        UdpHeader udp;
        udp.SetSourcePort(2794);
        udp.SetDestinationPort(1766);
        packet->AddHeader(udp);
        Ipv6Header ipv6;
        ipv6.SetSource("3ffe:2501:200:1fff::7");
        ipv6.SetDestination("3ffe:2501:200:3::1");
        ipv6.SetNextHeader(UdpL4Protocol::PROT_NUMBER);
        packet->AddHeader(ipv6);
        NS_TEST_EXPECT_MSG_EQ(RouterResources::Hash(packet, Ipv6L3Protocol::PROT_NUMBER, RouterResources::GetMicrosoftKey()),
                              0x40207d3d,
                              "IPv6 with ports, from the headers of a packet");

        Topology net;
        ResourceHelper helper;
        helper.AddPool("cpu", 4);
        helper.AddReceiveSideScaling("cpu", 4, 1e-6);
        auto router = helper.Install(net.nodes.Get(1));
        const Ipv4Address from = net.leftAddress.GetAddress(0);
        const Ipv4Address to = net.rightAddress.GetAddress(1);
        std::map<std::string, uint64_t> expected;
        for (uint16_t flow = 0; flow < 50; flow++)
        {
            net.Send(10, MicroSeconds(10), 100, Seconds(1) + MicroSeconds(1000 * flow), 1000 + flow);
            // Clients take ephemeral ports in order.
            const uint32_t queue = RouterResources::GetFlowHash(from, to, 49153 + flow, 1000 + flow) % 128 % 4;
            expected["core " + std::to_string(queue)] += 10;
        }
        Simulator::Run();
        for (const auto& [name, count] : expected)
        {
            NS_TEST_EXPECT_MSG_EQ(router->GetTaskUnit(name)->GetServed(), count, "packets go where their hash says");
        }
        NS_TEST_EXPECT_MSG_EQ(router->GetForwarded(), 500, "all of them");
    }
};

/**
 * \ingroup router-resources-tests
 * The module adds one event to a packet that it serves, two where units are revoked.
 */
class EventsTestCase : public TestCase
{
  public:
    EventsTestCase()
        : TestCase("events that the module adds to a packet")
    {
    }

  private:
    /**
     * \param helper what to install; null: nothing
     * \return events for each packet
     */
    double EventsOf(const ResourceHelper* helper)
    {
        Topology net;
        if (helper)
        {
            helper->Install(net.nodes.Get(1));
        }
        net.Send(10000, MicroSeconds(2));
        Simulator::Stop(Seconds(2));
        Simulator::Run();
        NS_TEST_EXPECT_MSG_EQ(net.Received(), 10000, "all arrive");
        return Simulator::GetEventCount() / 10000.0;
    }

    void DoRun() override
    {
        const double plain = EventsOf(nullptr);
        const auto one = OneCore(1e-6);
        NS_TEST_EXPECT_MSG_EQ_TOL(EventsOf(&one) - plain, 1.0, 0.01, "one core");
        ResourceHelper four;
        four.AddPool("cpu", 4, {1.0, 1.1, 1.2, 1.3});
        four.AddReceiveSideScaling("cpu", 4, 1e-6);
        NS_TEST_EXPECT_MSG_EQ_TOL(EventsOf(&four) - plain, 1.0, 0.01, "a distributor, contention and four cores");

        // Two classes at one core; the urgent come while others are served, and revoke the core each time.
        double events[2];
        uint64_t revoked = 0;
        for (const bool isConstrained : {false, true})
        {
            Topology net;
            ResourceHelper helper;
            helper.AddPool("cpu", 1);
            helper.SetPoolAttribute("cpu", "Policy", EnumValue(ResourcePool::PREEMPTIVE));
            for (const std::string unit : {"bulk", "urgent"})
            {
                helper.AddTaskUnit(unit);
                helper.AddNeed(unit, "cpu");
                helper.SetTaskUnitAttribute(unit, "PerPacket", DoubleValue(unit == "bulk" ? 10e-6 : 1e-6));
                helper.SetTaskUnitAttribute(unit, "Priority", IntegerValue(unit == "bulk" ? 0 : 1));
            }
            helper.SetEntry("bulk", 0);
            helper.SetEntry("urgent", 1);
            if (isConstrained)
            {
                auto router = helper.Install(net.nodes.Get(1));
                net.Watch(router);
            }
            net.Send(10000, MicroSeconds(20));
            net.SendBack(10000, MicroSeconds(20), 100, Seconds(1) + MicroSeconds(5));
            Simulator::Stop(Seconds(2));
            Simulator::Run();
            events[isConstrained] = Simulator::GetEventCount() / 20000.0;
            for (const auto& message : net.messages)
            {
                revoked += message.substr(0, 3) == "REV" ? 1 : 0;
            }
        }
        NS_TEST_EXPECT_MSG_EQ(revoked, 10000, "each urgent packet revokes the core");
        NS_TEST_EXPECT_MSG_EQ((events[1] - events[0] <= 2.0), true, "at most two events a packet where units are revoked");
    }
};

/**
 * \ingroup router-resources-tests
 * Several constrained nodes in one simulation, and a table of service times.
 */
class ManyNodesTestCase : public TestCase
{
  public:
    ManyNodesTestCase()
        : TestCase("constrained nodes in a row, service times by a table")
    {
    }

  private:
    void DoRun() override
    {
        NodeContainer nodes;
        nodes.Create(4);
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
        InternetStackHelper().Install(nodes);
        Ipv4AddressHelper address("10.0.0.0", "255.255.255.0");
        Ipv4InterfaceContainer last;
        for (uint32_t i = 0; i < 3; i++)
        {
            last = address.Assign(link.Install(nodes.Get(i), nodes.Get(i + 1)));
            address.NewNetwork();
        }
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        ResourceHelper helper;
        helper.AddPool("cpu", 1);
        helper.AddTaskUnit("core");
        helper.AddNeed("core", "cpu");
        helper.SetServiceTable("core", {{100, 1e-6}, {200, 3e-6}});
        const auto routers = helper.Install(NodeContainer(nodes.Get(1), nodes.Get(2)));
        NS_TEST_EXPECT_MSG_EQ_TOL(routers[0]->GetTaskUnit("core")->GetServiceSeconds(150), 2e-6, 1e-15, "between rows");
        NS_TEST_EXPECT_MSG_EQ_TOL(routers[0]->GetTaskUnit("core")->GetServiceSeconds(64), 1e-6, 1e-15, "below them");
        NS_TEST_EXPECT_MSG_EQ_TOL(routers[0]->GetTaskUnit("core")->GetServiceSeconds(1518), 3e-6, 1e-15, "above them");
        PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
        auto there = DynamicCast<PacketSink>(sink.Install(nodes.Get(3)).Get(0));
        UdpClientHelper client(last.GetAddress(1), 9);
        client.SetAttribute("MaxPackets", UintegerValue(100));
        client.SetAttribute("Interval", TimeValue(MicroSeconds(10)));
        client.SetAttribute("PacketSize", UintegerValue(104)); // 150 B as a frame
        client.Install(nodes.Get(0)).Start(Seconds(1));
        Simulator::Run();
        NS_TEST_EXPECT_MSG_EQ(there->GetTotalRx(), 10400, "all arrive");
        for (const auto& router : routers)
        {
            NS_TEST_EXPECT_MSG_EQ(router->GetForwarded(), 100, "each served all");
            NS_TEST_EXPECT_MSG_EQ(router->GetManager()->GetPool(0)->GetHeldTime(), MicroSeconds(200), "100 times 2 us");
        }
        Simulator::Destroy();
    }
};

/**
 * \ingroup router-resources-tests
 * Suite of the module.
 */
class RouterResourcesTestSuite : public TestSuite
{
  public:
    RouterResourcesTestSuite()
        : TestSuite("router-resources", ROUTER_RESOURCES_UNIT)
    {
        AddTestCase(new PassOnceTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new OneServerTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new MessagesTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new SharesTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new ContentionTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new TwoPoolsTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new ActivationTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new EnergyTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new EnergySourceTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new QueueDiscTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new SampledCountersTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new StackTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new RssTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new EventsTestCase, ROUTER_RESOURCES_QUICK);
        AddTestCase(new ManyNodesTestCase, ROUTER_RESOURCES_QUICK);
    }
};

/// The suite.
static RouterResourcesTestSuite g_routerResourcesTestSuite;
