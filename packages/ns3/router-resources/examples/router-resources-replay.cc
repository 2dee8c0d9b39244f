/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
/**
 * \file
 * \ingroup router-resources
 * Plays a trace of frames into a router that was read from a file, and prints what becomes of each.
 *
 * The file is what "routecast export FILE.router.toml --format ns3" writes. The trace is a CSV file with the columns
 * time_ps, frame_bytes, ingress, egress, entry: when the last bit of a frame is in, its size, the ports that it enters and
 * leaves by (numbers), and the entry of the indirection table of receive-side scaling that its hash chooses, for which a
 * port is found. Links take no time, so that what is seen is the router's own. Without a trace, frames of --frame bytes
 * come at --rate a second, evenly, as --flows flows from all ports in turn.
 *
 * Prints a line for each frame, in their order: number, instant when it left [ps], or the task unit that dropped it, or
 * "inside"; with --messages those of the managers before; a summary on standard error.
 */

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/resource-helper.h"

#include <cstdio>
#include <fstream>
#include <sstream>

using namespace ns3;

namespace
{

/// A frame of the trace.
struct Frame
{
    int64_t at;          //!< When its last bit is in [ps].
    uint32_t bytes;      //!< Its size.
    uint32_t ingress;    //!< Port that it enters by.
    uint32_t egress;     //!< Port that it leaves by.
    uint32_t entry;      //!< Entry of the indirection table.
    int64_t left{-1};    //!< When it left [ps].
    std::string dropped; //!< Task unit that dropped it.
};

/// Number of a frame, carried by its packet.
class NumberTag : public Tag
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("ns3::RouterResourcesNumberTag").SetParent<Tag>().AddConstructor<NumberTag>();
        return tid;
    }

    TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    uint32_t GetSerializedSize() const override
    {
        return 4;
    }

    void Serialize(TagBuffer buffer) const override
    {
        buffer.WriteU32(number);
    }

    void Deserialize(TagBuffer buffer) override
    {
        number = buffer.ReadU32();
    }

    void Print(std::ostream& out) const override
    {
        out << number;
    }

    uint32_t number{0}; //!< The number.
};

/**
 * \param packet a packet
 * \return number of its frame
 */
uint32_t
NumberOf(Ptr<const Packet> packet)
{
    NumberTag tag;
    NS_ABORT_MSG_UNLESS(packet->PeekPacketTag(tag), "a packet that is not of the trace");
    return tag.number;
}

/**
 * \param path path of a trace
 * \param ports number of ports
 * \return its frames
 */
std::vector<Frame>
ReadTrace(const std::string& path, uint32_t ports)
{
    std::ifstream file(path);
    NS_ABORT_MSG_UNLESS(file, path << ": cannot be read");
    std::string line;
    std::getline(file, line);
    const std::string head = "time_ps,frame_bytes,ingress,egress,entry";
    NS_ABORT_MSG_UNLESS(line == head, path << ", line 1: got \"" << line << "\"; expected \"" << head << "\"");
    std::vector<Frame> frames;
    while (std::getline(file, line))
    {
        Frame frame{};
        char c = 0;
        std::istringstream cells(line);
        const bool isRead = static_cast<bool>(cells >> frame.at >> c >> frame.bytes >> c >> frame.ingress >> c >>
                                              frame.egress >> c >> frame.entry);
        NS_ABORT_MSG_UNLESS(isRead && frame.ingress < ports && frame.egress < ports && frame.entry < 128 &&
                                frame.bytes >= 64 && (frames.empty() || frames.back().at <= frame.at),
                            path << ", line " << frames.size() + 2 << ": got \"" << line << "\"; expected " << head
                                 << ", instants that do not fall, frames of 64 bytes or more, ports below " << ports
                                 << ", entries below 128");
        frames.push_back(frame);
    }
    return frames;
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string path;
    std::string trace;
    double rate = 1e6;
    uint32_t frameBytes = 64;
    uint32_t flows = 4;
    double duration = 0.01;
    bool isTold = false;
    CommandLine cmd(__FILE__);
    cmd.AddValue("router", "Router file, of \"routecast export --format ns3\".", path);
    cmd.AddValue("trace", "Trace of frames, a CSV file.", trace);
    cmd.AddValue("rate", "Without a trace: frames a second.", rate);
    cmd.AddValue("frame", "Without a trace: size of the frames [B].", frameBytes);
    cmd.AddValue("flows", "Without a trace: number of flows.", flows);
    cmd.AddValue("duration", "Simulated time [s].", duration);
    cmd.AddValue("messages", "Print the messages of the managers, too.", isTold);
    cmd.Parse(argc, argv);
    NS_ABORT_MSG_IF(path.empty(), "say --router=FILE");
    Time::SetResolution(Time::PS);

    const auto helper = ResourceHelper::FromFile(path);
    const uint32_t ports = helper.GetNEntries();
    std::vector<Frame> frames;
    if (trace.empty())
    {
        for (uint32_t n = 0; n < rate * duration; n++)
        {
            const uint32_t flow = n % flows;
            frames.push_back({std::llround(n * 1e12 / rate), frameBytes, flow % ports, (flow + 1) % ports, flow % 128, -1, ""});
        }
    }
    else
    {
        frames = ReadTrace(trace, ports);
    }

    // A host at each port, and links that take no time.
    NodeContainer nodes;
    nodes.Create(ports + 1);
    const Ptr<Node> node = nodes.Get(ports);
    std::vector<Ptr<SimpleNetDevice>> hosts;
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(node);
    Ipv4AddressHelper address("10.0.0.0", "255.255.255.0");
    std::vector<Ipv4Address> far;
    for (uint32_t port = 0; port < ports; port++)
    {
        SimpleNetDeviceHelper link;
        link.SetNetDevicePointToPointMode(true);
        const auto devices = link.Install(NodeContainer(nodes.Get(port), node));
        hosts.push_back(DynamicCast<SimpleNetDevice>(devices.Get(0)));
        far.emplace_back(address.Assign(NetDeviceContainer(devices.Get(1))).GetAddress(0).Get() + 100);
        address.NewNetwork();
        hosts[port]->SetReceiveCallback(Callback<bool, Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&>(
            [&frames](Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&) {
                frames[NumberOf(packet)].left = Simulator::Now().GetTimeStep();
                return true;
            }));
    }
    const Ptr<RouterResources> router = helper.Install(node);
    router->TraceConnectWithoutContext("Drop",
                                       Callback<void, Ptr<const Packet>, const std::string&>(
                                           [&frames](Ptr<const Packet> packet, const std::string& unit) {
                                               frames[NumberOf(packet)].dropped = unit;
                                           }));
    if (isTold)
    {
        router->GetManager()->TraceConnectWithoutContext(
            "Message",
            Callback<void,
                     Time,
                     ResourceMessage,
                     const std::string&,
                     const std::string&,
                     uint32_t,
                     Ptr<const Packet>>([](Time at,
                                           ResourceMessage message,
                                           const std::string& unit,
                                           const std::string& pool,
                                           uint32_t number,
                                           Ptr<const Packet>) {
                std::printf("message,%lld,%s,%s,%s,%s\n",
                            static_cast<long long>(at.GetTimeStep()),
                            GetName(message),
                            unit.c_str(),
                            pool.c_str(),
                            number == ResourceManager::NO_UNIT ? "" : std::to_string(number).c_str());
            }));
    }

    // A source port for each entry and way, found once.
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint16_t> fromPorts;
    std::function<void(uint32_t)> send = [&](uint32_t number) {
        const Frame& frame = frames[number];
        const Ipv4Address from = far[frame.ingress];
        const Ipv4Address to = far[frame.egress];
        auto [found, isNew] = fromPorts.try_emplace({frame.ingress, frame.egress, frame.entry}, 1024);
        while (isNew && RouterResources::GetFlowHash(from, to, found->second, 9) % 128 != frame.entry)
        {
            found->second++;
        }
        auto packet = Create<Packet>(frame.bytes - 18 - 20 - 8);
        UdpHeader udp;
        udp.SetSourcePort(found->second);
        udp.SetDestinationPort(9);
        packet->AddHeader(udp);
        Ipv4Header ip;
        ip.SetSource(from);
        ip.SetDestination(to);
        ip.SetProtocol(UdpL4Protocol::PROT_NUMBER);
        ip.SetPayloadSize(packet->GetSize());
        ip.SetTtl(64);
        packet->AddHeader(ip);
        NumberTag tag;
        tag.number = number;
        packet->AddPacketTag(tag);
        hosts[frame.ingress]->Send(packet, Mac48Address::GetBroadcast(), Ipv4L3Protocol::PROT_NUMBER);
        if (number + 1 < frames.size())
        {
            Simulator::Schedule(TimeStep(frames[number + 1].at - frame.at), [&send, number] { send(number + 1); });
        }
    };
    if (!frames.empty())
    {
        Simulator::Schedule(TimeStep(frames[0].at), [&send] { send(0); });
    }
    Simulator::Stop(Seconds(duration));
    Simulator::Run();

    uint64_t forwarded = 0;
    for (std::size_t number = 0; number < frames.size(); number++)
    {
        const Frame& frame = frames[number];
        forwarded += frame.left >= 0 ? 1 : 0;
        std::printf("frame,%zu,%s\n",
                    number,
                    frame.left >= 0           ? std::to_string(frame.left).c_str()
                    : frame.dropped.empty() ? "inside"
                                            : frame.dropped.c_str());
    }
    std::fprintf(stderr,
                 "%zu frames: %llu left, %llu were dropped, %llu are inside; %.4g Mpps, %llu events\n",
                 frames.size(),
                 static_cast<unsigned long long>(forwarded),
                 static_cast<unsigned long long>(router->GetDropped()),
                 static_cast<unsigned long long>(router->GetInside()),
                 1e-6 * forwarded / duration,
                 static_cast<unsigned long long>(Simulator::GetEventCount()));
    NS_ABORT_MSG_UNLESS(router->GetOffered() == router->GetForwarded() + router->GetDropped() + router->GetInside(),
                        "packets are not conserved");
    Simulator::Destroy();
    return 0;
}
