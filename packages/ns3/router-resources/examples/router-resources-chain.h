/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef ROUTER_RESOURCES_EXAMPLE_CHAIN_H
#define ROUTER_RESOURCES_EXAMPLE_CHAIN_H

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/resource-helper.h"

/**
 * \ingroup router-resources
 * What the examples share: host 0, a router, host 1, two links.
 */
struct Chain
{
    /**
     * \param rate rate of both links
     * \param delay propagation of each
     */
    explicit Chain(const std::string& rate = "10Gbps", ns3::Time delay = ns3::Time(0))
    {
        nodes.Create(3);
        ns3::PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", ns3::StringValue(rate));
        link.SetChannelAttribute("Delay", ns3::TimeValue(delay));
        const auto left = link.Install(nodes.Get(0), nodes.Get(1));
        const auto right = link.Install(nodes.Get(1), nodes.Get(2));
        ns3::InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.Install(nodes);
        ns3::Ipv4AddressHelper address("10.0.1.0", "255.255.255.0");
        addresses[0] = address.Assign(left).GetAddress(0);
        address.SetBase("10.0.2.0", "255.255.255.0");
        addresses[1] = address.Assign(right).GetAddress(1);
        ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    }

    ~Chain()
    {
        ns3::Simulator::Destroy();
    }

    /**
     * Send packets of UDP at equal gaps.
     * \param from host 0 or 1
     * \param port destination port
     * \param payload bytes of a packet
     * \param gap time between two
     * \param start time of the first
     * \return the sink at the other host
     */
    ns3::Ptr<ns3::PacketSink> Send(uint32_t from, uint16_t port, uint32_t payload, ns3::Time gap, ns3::Time start)
    {
        ns3::PacketSinkHelper sink("ns3::UdpSocketFactory",
                                   ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port));
        const auto sinks = sink.Install(Host(1 - from));
        ns3::UdpClientHelper client(addresses[1 - from], port);
        client.SetAttribute("MaxPackets", ns3::UintegerValue(UINT32_MAX));
        client.SetAttribute("Interval", ns3::TimeValue(gap));
        client.SetAttribute("PacketSize", ns3::UintegerValue(payload));
        client.Install(Host(from)).Start(start);
        return ns3::DynamicCast<ns3::PacketSink>(sinks.Get(0));
    }

    /**
     * \param number 0 or 1
     * \return the host
     */
    ns3::Ptr<ns3::Node> Host(uint32_t number) const
    {
        return nodes.Get(2 * number);
    }

    /**
     * \return the router
     */
    ns3::Ptr<ns3::Node> Router() const
    {
        return nodes.Get(1);
    }

    ns3::NodeContainer nodes;         //!< Host, router, host.
    ns3::Ipv4Address addresses[2];    //!< Of the hosts.
};

#endif // ROUTER_RESOURCES_EXAMPLE_CHAIN_H
