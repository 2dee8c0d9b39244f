/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "router-resources.h"

#include "ns3/arp-l3-protocol.h"
#include "ns3/boolean.h"
#include "ns3/ipv4-l3-protocol.h"
#include "ns3/ipv6-header.h"
#include "ns3/ipv6-l3-protocol.h"
#include "ns3/log.h"
#include "ns3/loopback-net-device.h"
#include "ns3/names.h"
#include "ns3/simulator.h"
#include "ns3/uinteger.h"

#include <algorithm>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("RouterResources");
NS_OBJECT_ENSURE_REGISTERED(RouterResources);

namespace
{

/// Entries of an indirection table.
constexpr uint32_t INDIRECTION = 128;

/// Handlers that a stack registers for a device: IPv4, ARP, IPv6, and as many again.
constexpr uint32_t HANDLERS_PER_DEVICE = 8;

/**
 * \param names known names
 * \return them in a line, for an error
 */
std::string
Known(const std::vector<std::string>& names)
{
    std::string line;
    for (const std::string& name : names)
    {
        line += (line.empty() ? "\"" : ", \"") + name + "\"";
    }
    return line.empty() ? "none" : line;
}

/**
 * \param data what to hash
 * \param length its bytes
 * \param key the key
 * \return the Toeplitz hash
 */
uint32_t
Toeplitz(const uint8_t* data, std::size_t length, const std::vector<uint8_t>& key)
{
    uint32_t hash = 0;
    uint32_t window = uint32_t{key[0]} << 24 | uint32_t{key[1]} << 16 | uint32_t{key[2]} << 8 | key[3];
    for (std::size_t byte = 0; byte < length; byte++)
    {
        for (int bit = 7; bit >= 0; bit--)
        {
            hash ^= (data[byte] >> bit & 1) ? window : 0;
            window = window << 1 | (key[byte + 4] >> bit & 1);
        }
    }
    return hash;
}

/// Bytes that receive-side scaling hashes at most: two IPv6 addresses and two ports.
constexpr std::size_t MOST_HASHED = 36;

/**
 * Reads what receive-side scaling hashes off the headers of a packet.
 * \param packet a packet that begins with an IP header
 * \param protocol its Ethertype
 * \param data where addresses and ports are put
 * \return how many bytes that are
 */
std::size_t
GetHashed(Ptr<const Packet> packet, uint16_t protocol, std::array<uint8_t, MOST_HASHED>& data)
{
    constexpr uint8_t TCP = 6;
    constexpr uint8_t UDP = 17;
    std::array<uint8_t, 64> head{};
    const std::size_t size = packet->CopyData(head.data(), head.size());
    const bool isIpv4 = protocol == Ipv4L3Protocol::PROT_NUMBER;
    if (!isIpv4 && protocol != Ipv6L3Protocol::PROT_NUMBER)
    {
        return 0;
    }
    const std::size_t addresses = isIpv4 ? 8 : 32;
    std::copy_n(&head[isIpv4 ? 12 : 8], addresses, data.begin());
    const std::size_t ports = isIpv4 ? 4 * (head[0] & 0xf) : 40;
    const uint8_t above = head[isIpv4 ? 9 : 6];
    const bool isFragment = isIpv4 && ((head[6] & 0x3f) != 0 || head[7] != 0);
    if ((above != TCP && above != UDP) || isFragment || ports + 4 > size)
    {
        return addresses;
    }
    std::copy_n(&head[ports], 4, &data[addresses]);
    return addresses + 4;
}

} // namespace

TypeId
RouterResources::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::RouterResources")
            .SetParent<Object>()
            .SetGroupName("RouterResources")
            .AddConstructor<RouterResources>()
            .AddAttribute("Forwarded",
                          "Whether packets that the node forwards take resources.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&RouterResources::m_forwarded),
                          MakeBooleanChecker())
            .AddAttribute("Delivered",
                          "Whether packets to the node itself, multicast and broadcast take resources, ICMP and IPv6 "
                          "neighbour discovery among them.",
                          BooleanValue(false),
                          MakeBooleanAccessor(&RouterResources::m_delivered),
                          MakeBooleanChecker())
            .AddAttribute("Arp",
                          "Whether ARP takes resources.",
                          BooleanValue(false),
                          MakeBooleanAccessor(&RouterResources::m_arp),
                          MakeBooleanChecker())
            .AddAttribute("FrameOverhead",
                          "Bytes of a frame beyond its IP packet: 18 for Ethernet's header and FCS.",
                          UintegerValue(18),
                          MakeUintegerAccessor(&RouterResources::m_overhead),
                          MakeUintegerChecker<uint32_t>())
            .AddAttribute("LeastFrame",
                          "Least bytes of a frame, to which shorter ones are padded: 64 for Ethernet.",
                          UintegerValue(64),
                          MakeUintegerAccessor(&RouterResources::m_leastFrame),
                          MakeUintegerChecker<uint32_t>())
            .AddTraceSource("Sojourn",
                            "A packet was served: from the last bit in until it is handed to IP.",
                            MakeTraceSourceAccessor(&RouterResources::m_sojourn),
                            "ns3::RouterResources::SojournCallback")
            .AddTraceSource("Drop",
                            "A packet found a queue full.",
                            MakeTraceSourceAccessor(&RouterResources::m_drop),
                            "ns3::RouterResources::PacketCallback");
    return tid;
}

RouterResources::RouterResources()
    : m_manager(CreateObject<ResourceManager>()),
      m_key(GetMicrosoftKey())
{
    NS_LOG_FUNCTION(this);
}

RouterResources::~RouterResources()
{
    NS_LOG_FUNCTION(this);
}

void
RouterResources::DoDispose()
{
    for (auto& unit : m_units)
    {
        unit->Dispose();
    }
    m_units.clear();
    m_entries.clear();
    m_first.clear();
    if (m_manager)
    {
        m_manager->Dispose();
    }
    m_manager = nullptr;
    m_node = nullptr;
    m_stack = nullptr;
    m_ipv4 = nullptr;
    m_ipv6 = nullptr;
    Object::DoDispose();
}

Ptr<ResourceManager>
RouterResources::GetManager() const
{
    return m_manager;
}

void
RouterResources::AddPool(Ptr<ResourcePool> pool)
{
    NS_ABORT_MSG_IF(m_isInstalled, "pool \"" << pool->GetName() << "\": add pools before Install");
    m_manager->AddPool(pool);
}

void
RouterResources::AddTaskUnit(Ptr<TaskUnit> unit)
{
    NS_ABORT_MSG_IF(m_isInstalled, "task unit \"" << unit->GetName() << "\": add task units before Install");
    for (const auto& other : m_units)
    {
        NS_ABORT_MSG_IF(other->GetName() == unit->GetName(),
                        "task unit \"" << unit->GetName()
                                       << "\": there is one of that name already; names are unique");
    }
    m_units.push_back(unit);
}

void
RouterResources::SetEntry(const std::string& unit, Ptr<NetDevice> device)
{
    NS_ABORT_MSG_IF(m_isInstalled, "entry \"" << unit << "\": say entries before Install");
    if (device)
    {
        m_entries[device] = unit;
    }
    else
    {
        m_entry = unit;
    }
}

void
RouterResources::SetRss(const std::vector<uint8_t>& key, const std::vector<uint32_t>& indirection)
{
    NS_ABORT_MSG_UNLESS(key.empty() || key.size() == 40,
                        "RSS key of " << key.size() << " bytes: allowed is 40, or none for Microsoft's");
    NS_ABORT_MSG_UNLESS(indirection.empty() || indirection.size() == INDIRECTION,
                        "RSS indirection table of " << indirection.size() << " entries: allowed is " << INDIRECTION
                                                    << ", or none");
    m_key = key.empty() ? GetMicrosoftKey() : key;
    m_indirection = indirection;
    m_hashOf.clear();
}

uint32_t
RouterResources::FindPool(const std::string& name, const std::string& where) const
{
    std::vector<std::string> names;
    for (uint32_t pool = 0; pool < m_manager->GetNPools(); pool++)
    {
        names.push_back(m_manager->GetPool(pool)->GetName());
        if (names.back() == name)
        {
            return pool;
        }
    }
    NS_ABORT_MSG(where << ": there is no pool \"" << name << "\"; there are " << Known(names));
    return 0;
}

TaskUnit*
RouterResources::FindTaskUnit(const std::string& name, const std::string& where) const
{
    std::vector<std::string> names;
    for (const auto& unit : m_units)
    {
        names.push_back(unit->GetName());
        if (names.back() == name)
        {
            return PeekPointer(unit);
        }
    }
    NS_ABORT_MSG(where << ": there is no task unit \"" << name << "\"; there are " << Known(names));
    return nullptr;
}

Ptr<TaskUnit>
RouterResources::GetTaskUnit(const std::string& name) const
{
    return FindTaskUnit(name, "GetTaskUnit");
}

uint32_t
RouterResources::GetNTaskUnits() const
{
    return m_units.size();
}

Ptr<TaskUnit>
RouterResources::GetTaskUnit(uint32_t number) const
{
    return m_units.at(number);
}

void
RouterResources::Install(Ptr<Node> node)
{
    NS_LOG_FUNCTION(this << node);
    const std::string where = "node " + std::to_string(node->GetId());
    NS_ABORT_MSG_IF(m_isInstalled, where << ": these resources are those of node " << m_node->GetId() << " already");
    NS_ABORT_MSG_IF(node->GetObject<RouterResources>(), where << ": it has resources already; a node has them once");
    m_stack = node->GetObject<TrafficControlLayer>();
    m_ipv4 = node->GetObject<Ipv4>();
    m_ipv6 = node->GetObject<Ipv6>();
    NS_ABORT_MSG_UNLESS(m_stack && (m_ipv4 || m_ipv6),
                        where << ": it has no IP stack; install one first (InternetStackHelper), and addresses");
    NS_ABORT_MSG_IF(m_units.empty(), where << ": its router has no task unit; add one at least");

    std::vector<Ptr<NetDevice>> devices;
    for (uint32_t i = 0; i < node->GetNDevices(); i++)
    {
        if (!DynamicCast<LoopbackNetDevice>(node->GetDevice(i)))
        {
            devices.push_back(node->GetDevice(i));
        }
    }
    NS_ABORT_MSG_IF(devices.empty(), where << ": it has no device but loopback; install devices first");
    for (const auto& [device, unit] : m_entries)
    {
        NS_ABORT_MSG_IF(std::find(devices.begin(), devices.end(), device) == devices.end(),
                        where << ": entry \"" << unit << "\" is of a device that is not the node's");
    }
    for (const auto& device : devices)
    {
        const auto own = m_entries.find(device);
        const std::string& entry = own == m_entries.end() ? m_entry : own->second;
        const std::string name = "entry of device " + std::to_string(device->GetIfIndex());
        NS_ABORT_MSG_IF(entry.empty(), where << ": " << name << " is not said (SetEntry)");
        m_first.resize(std::max<std::size_t>(m_first.size(), device->GetIfIndex() + 1), nullptr);
        m_first[device->GetIfIndex()] = FindTaskUnit(entry, name);
    }
    m_node = node;
    for (const auto& unit : m_units)
    {
        unit->Start(*this);
    }
    // The hash is linear: that of a text is the sum of those of its bytes.
    m_hashOf.resize(MOST_HASHED);
    for (std::size_t byte = 0; byte < MOST_HASHED; byte++)
    {
        std::array<uint8_t, MOST_HASHED> data{};
        for (uint32_t value = 0; value < 256; value++)
        {
            data[byte] = static_cast<uint8_t>(value);
            m_hashOf[byte][value] = Toeplitz(data.data(), MOST_HASHED, m_key);
        }
    }
    // A circle of ways that take no time would go on for ever within an instant; any circle would never end.
    for (const auto& unit : m_units)
    {
        std::vector<const TaskUnit*> ahead(unit->m_next.begin(), unit->m_next.end());
        std::vector<const TaskUnit*> seen;
        while (!ahead.empty())
        {
            const TaskUnit* next = ahead.back();
            ahead.pop_back();
            NS_ABORT_MSG_IF(next == PeekPointer(unit),
                            where << ": packets come back to task unit \"" << unit->GetName()
                                  << "\"; ways must lead out of the router");
            if (std::find(seen.begin(), seen.end(), next) == seen.end())
            {
                seen.push_back(next);
                ahead.insert(ahead.end(), next->m_next.begin(), next->m_next.end());
            }
        }
    }

    // The stack registered its traffic control layer for each protocol and interface. A handler of another spelling
    // would match nothing and say nothing, and packets would pass twice: CheckIpv4 and CheckIpv6 watch for that.
    const auto plain = MakeCallback(&TrafficControlLayer::Receive, m_stack);
    for (uint32_t i = 0; i < HANDLERS_PER_DEVICE * node->GetNDevices(); i++)
    {
        node->UnregisterProtocolHandler(plain);
    }
    for (const auto& device : devices)
    {
        const auto own = MakeCallback(&RouterResources::Receive, this);
        if (m_ipv4)
        {
            node->RegisterProtocolHandler(own, Ipv4L3Protocol::PROT_NUMBER, device);
            node->RegisterProtocolHandler(own, ArpL3Protocol::PROT_NUMBER, device);
        }
        if (m_ipv6)
        {
            node->RegisterProtocolHandler(own, Ipv6L3Protocol::PROT_NUMBER, device);
        }
    }
    if (auto ipv4 = DynamicCast<Ipv4L3Protocol>(m_ipv4))
    {
        ipv4->TraceConnectWithoutContext("Rx", MakeCallback(&RouterResources::CheckIpv4, this));
    }
    if (auto ipv6 = DynamicCast<Ipv6L3Protocol>(m_ipv6))
    {
        ipv6->TraceConnectWithoutContext("Rx", MakeCallback(&RouterResources::CheckIpv6, this));
    }
    node->RegisterDeviceAdditionListener(MakeCallback(&RouterResources::DeviceAdded, this));
    m_isInstalled = true;
    node->AggregateObject(this);
}

void
RouterResources::DeviceAdded(Ptr<NetDevice> device)
{
    // Listeners hear of the devices that are there already, too.
    NS_ABORT_MSG_IF(m_isInstalled && m_node,
                    "node " << m_node->GetId() << ": device " << device->GetIfIndex()
                            << " came after the node's resources; install devices first");
}

void
RouterResources::CheckIpv4(Ptr<const Packet>, Ptr<Ipv4> ipv4, uint32_t interface)
{
    NS_ABORT_MSG_UNLESS(m_isHandingUp || DynamicCast<LoopbackNetDevice>(ipv4->GetNetDevice(interface)),
                        "node " << m_node->GetId() << ": a packet reached IPv4 at interface " << interface
                                << " past the node's resources; give addresses before installing them");
}

void
RouterResources::CheckIpv6(Ptr<const Packet>, Ptr<Ipv6> ipv6, uint32_t interface)
{
    NS_ABORT_MSG_UNLESS(m_isHandingUp || DynamicCast<LoopbackNetDevice>(ipv6->GetNetDevice(interface)),
                        "node " << m_node->GetId() << ": a packet reached IPv6 at interface " << interface
                                << " past the node's resources; give addresses before installing them");
}

void
RouterResources::Receive(Ptr<NetDevice> device,
                         Ptr<const Packet> packet,
                         uint16_t protocol,
                         const Address& from,
                         const Address& to,
                         NetDevice::PacketType type)
{
    RouterPacket own{device, packet, protocol, from, to, type, Time(), 0, -1};
    if (!TakesResources(device, packet, protocol))
    {
        m_passedBy++;
        HandUp(own);
        return;
    }
    own.received = Simulator::Now();
    own.frameBytes = std::max(packet->GetSize() + m_overhead, m_leastFrame);
    m_offered++;
    if (!m_isPowered)
    {
        Drop(own, "power");
        return;
    }
    m_first[device->GetIfIndex()]->Receive(std::move(own));
}

bool
RouterResources::TakesResources(Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t protocol) const
{
    if (protocol == ArpL3Protocol::PROT_NUMBER)
    {
        return m_arp;
    }
    if (m_forwarded == m_delivered)
    {
        return m_forwarded;
    }
    bool isOwn = false;
    if (protocol == Ipv4L3Protocol::PROT_NUMBER)
    {
        std::array<uint8_t, 20> head{};
        packet->CopyData(head.data(), head.size());
        const Ipv4Address to = Ipv4Address::Deserialize(&head[16]);
        const int32_t interface = m_ipv4->GetInterfaceForDevice(device);
        isOwn = to.IsMulticast() || interface < 0 || m_ipv4->IsDestinationAddress(to, interface);
    }
    else
    {
        Ipv6Header header;
        packet->PeekHeader(header);
        const Ipv6Address to = header.GetDestination();
        isOwn = to.IsMulticast() || to.IsLinkLocal() || m_ipv6->GetInterfaceForAddress(to) >= 0;
    }
    return isOwn ? m_delivered : m_forwarded;
}

void
RouterResources::HandUp(const RouterPacket& packet)
{
    const bool was = m_isHandingUp;
    m_isHandingUp = true;
    m_stack->Receive(packet.device, packet.packet, packet.protocol, packet.from, packet.to, packet.type);
    m_isHandingUp = was;
}

void
RouterResources::Deliver(RouterPacket&& packet)
{
    m_served++;
    m_sojourn(packet.packet, Simulator::Now() - packet.received);
    HandUp(packet);
}

void
RouterResources::Drop(const RouterPacket& packet, const std::string& place)
{
    m_dropped++;
    m_drop(packet.packet, place);
}

Ptr<Node>
RouterResources::GetNode() const
{
    return m_node;
}

void
RouterResources::SetPowered(bool isPowered)
{
    m_isPowered = isPowered;
}

uint64_t
RouterResources::GetOffered() const
{
    return m_offered;
}

uint64_t
RouterResources::GetForwarded() const
{
    return m_served;
}

uint64_t
RouterResources::GetDropped() const
{
    return m_dropped;
}

uint64_t
RouterResources::GetPassedBy() const
{
    return m_passedBy;
}

uint64_t
RouterResources::GetInside() const
{
    uint64_t inside = 0;
    for (const auto& unit : m_units)
    {
        inside += unit->GetInside();
    }
    return inside;
}

std::size_t
RouterResources::GetRssQueue(RouterPacket& packet, uint32_t queues)
{
    if (packet.hash < 0)
    {
        std::array<uint8_t, MOST_HASHED> data{};
        const std::size_t size = GetHashed(packet.packet, packet.protocol, data);
        uint32_t hash = 0;
        for (std::size_t byte = 0; byte < size; byte++)
        {
            hash ^= m_hashOf[byte][data[byte]];
        }
        packet.hash = hash;
    }
    const uint32_t entry = static_cast<uint32_t>(packet.hash) % INDIRECTION;
    return (m_indirection.empty() ? entry : m_indirection[entry]) % queues;
}

const std::vector<uint8_t>&
RouterResources::GetMicrosoftKey()
{
    // Microsoft, "Verifying the RSS hash calculation".
    static const std::vector<uint8_t> key{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                          0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                          0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                          0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
    return key;
}

uint32_t
RouterResources::Hash(Ptr<const Packet> packet, uint16_t protocol, const std::vector<uint8_t>& key)
{
    std::array<uint8_t, MOST_HASHED> data{};
    return Toeplitz(data.data(), GetHashed(packet, protocol, data), key);
}

uint32_t
RouterResources::GetFlowHash(Ipv4Address from, Ipv4Address to, uint16_t fromPort, uint16_t toPort)
{
    std::array<uint8_t, 12> data{};
    from.Serialize(&data[0]);
    to.Serialize(&data[4]);
    data[8] = fromPort >> 8;
    data[9] = fromPort & 0xff;
    data[10] = toPort >> 8;
    data[11] = toPort & 0xff;
    return Toeplitz(data.data(), data.size(), GetMicrosoftKey());
}
int64_t
RouterResources::AssignStreams(int64_t stream)
{
    int64_t used = 0;
    for (const auto& unit : m_units)
    {
        used += unit->AssignStreams(stream + used);
    }
    return used;
}

} // namespace ns3
