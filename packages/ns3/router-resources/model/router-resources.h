/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef ROUTER_RESOURCES_H
#define ROUTER_RESOURCES_H

#include "resource-manager.h"
#include "task-unit.h"

#include "ns3/ipv4.h"
#include "ns3/ipv6.h"
#include "ns3/node.h"
#include "ns3/object.h"
#include "ns3/traffic-control-layer.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ns3
{

/**
 * \ingroup router-resources
 * \defgroup router-resources Resources inside a router
 *
 * The resource-constrained multi-core router of Meyer, Wohlfart, Raumer, Wolfinger and Carle: "Validated Model-Based
 * Performance Prediction of Multi-Core Software Routers", PIK 37(1), 2014.
 */

/**
 * \ingroup router-resources
 *
 * What is inside a router: aggregated to a node, it takes the packets that the node's devices receive, leads them
 * through task units, and hands them to the node's IP stack when they have been served. Traffic control, IP, routing,
 * transports, applications and traces of the node work as without it; other nodes are not constrained.
 *
 * One line of attributes says which packets take resources; the others go to IP at once. ARP and IPv6 neighbour
 * discovery, which addresses need, do not unless they are asked to.
 */
class RouterResources : public Object
{
  public:
    /**
     * TracedCallback signature of packets.
     * \param packet the packet, without the header of the link
     * \param taskUnit name of the task unit
     */
    typedef void (*PacketCallback)(Ptr<const Packet> packet, const std::string& taskUnit);

    /**
     * TracedCallback signature of sojourn times.
     * \param packet the packet, without the header of the link
     * \param sojourn time from the last bit in until the packet is handed to IP
     */
    typedef void (*SojournCallback)(Ptr<const Packet> packet, Time sojourn);

    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();
    RouterResources();
    ~RouterResources() override;

    /**
     * \return the resource managers
     */
    Ptr<ResourceManager> GetManager() const;

    /**
     * \param pool a pool, whose name is new
     */
    void AddPool(Ptr<ResourcePool> pool);

    /**
     * \param unit a task unit, whose name is new
     */
    void AddTaskUnit(Ptr<TaskUnit> unit);

    /**
     * Say which task unit gets the packets that a device receives.
     * \param unit name of the task unit
     * \param device the device; null: every device without one of its own
     */
    void SetEntry(const std::string& unit, Ptr<NetDevice> device = nullptr);

    /**
     * Set the key and the table of receive-side scaling.
     * \param key the Toeplitz key, 40 bytes; empty: Microsoft's
     * \param indirection 128 queue numbers; empty: entry i is i modulo the number of queues
     */
    void SetRss(const std::vector<uint8_t>& key, const std::vector<uint32_t>& indirection = {});

    /**
     * Attach it to a node that has an IP stack and devices: from now on packets take its resources.
     *
     * Devices that get an address later are an error, as is a second one on a node.
     *
     * \param node the node
     */
    void Install(Ptr<Node> node);

    /**
     * \param name name of a pool
     * \param where who asks, for the error
     * \return its number
     */
    uint32_t FindPool(const std::string& name, const std::string& where) const;

    /**
     * \param name name of a task unit
     * \param where who asks, for the error
     * \return the task unit
     */
    TaskUnit* FindTaskUnit(const std::string& name, const std::string& where) const;

    /**
     * \param name name of a task unit
     * \return the task unit
     */
    Ptr<TaskUnit> GetTaskUnit(const std::string& name) const;

    /**
     * \return the number of task units
     */
    uint32_t GetNTaskUnits() const;

    /**
     * \param number number of a task unit
     * \return the task unit
     */
    Ptr<TaskUnit> GetTaskUnit(uint32_t number) const;

    /**
     * \return packets that came and take resources
     */
    uint64_t GetOffered() const;

    /**
     * \return packets that were served and handed to IP
     */
    uint64_t GetForwarded() const;

    /**
     * \return packets that found a queue full
     */
    uint64_t GetDropped() const;

    /**
     * \return packets inside
     */
    uint64_t GetInside() const;

    /**
     * \return packets that took no resources
     */
    uint64_t GetPassedBy() const;

    /**
     * The Toeplitz hash of receive-side scaling, as network cards compute it: over addresses and ports of TCP and UDP
     * over IPv4 and IPv6, over addresses alone of anything else and of fragments.
     *
     * \param packet a packet that begins with an IP header
     * \param protocol its Ethertype
     * \param key the key, 40 bytes
     * \return the hash
     */
    static uint32_t Hash(Ptr<const Packet> packet, uint16_t protocol, const std::vector<uint8_t>& key);

    /**
     * The hash of the packets of a flow of TCP or UDP over IPv4 with Microsoft's key, to choose ports by.
     *
     * \param from source address
     * \param to destination address
     * \param fromPort source port
     * \param toPort destination port
     * \return the hash
     */
    static uint32_t GetFlowHash(Ipv4Address from, Ipv4Address to, uint16_t fromPort, uint16_t toPort);

    /**
     * \return Microsoft's key, which drivers and their documentation use
     */
    static const std::vector<uint8_t>& GetMicrosoftKey();

    /**
     * Assign fixed random variable streams to all task units.
     * \param stream first stream to use
     * \return how many were used
     */
    int64_t AssignStreams(int64_t stream);

    /**
     * \return the node that it is installed on, or null
     */
    Ptr<Node> GetNode() const;

    /**
     * Without power, packets that would take resources are dropped, at "power"; units finish what they hold.
     * \param isPowered whether there is power
     */
    void SetPowered(bool isPowered);

  protected:
    void DoDispose() override;

  private:
    friend class TaskUnit;

    /**
     * The node's protocol handler: a device has received a packet.
     * \param device the device
     * \param packet the packet
     * \param protocol its Ethertype
     * \param from who sent it
     * \param to to whom
     * \param type whether it is for this host
     */
    void Receive(Ptr<NetDevice> device,
                 Ptr<const Packet> packet,
                 uint16_t protocol,
                 const Address& from,
                 const Address& to,
                 NetDevice::PacketType type);

    /**
     * \param device the device that received it
     * \param packet a packet
     * \param protocol its Ethertype
     * \return whether it takes resources
     */
    bool TakesResources(Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t protocol) const;

    /**
     * Hands a packet to the stack above.
     * \param packet the packet
     */
    void HandUp(const RouterPacket& packet);

    /**
     * A packet has been served.
     * \param packet the packet
     */
    void Deliver(RouterPacket&& packet);

    /**
     * A packet is lost.
     * \param packet the packet
     * \param place the task unit whose queue was full, or "power"
     */
    void Drop(const RouterPacket& packet, const std::string& place);

    /**
     * \param packet a packet
     * \param queues number of queues
     * \return the queue that receive-side scaling chooses
     */
    std::size_t GetRssQueue(RouterPacket& packet, uint32_t queues);

    /**
     * IPv4 received a packet: it must have come from here.
     * \param packet the packet
     * \param ipv4 the stack
     * \param interface the interface
     */
    void CheckIpv4(Ptr<const Packet> packet, Ptr<Ipv4> ipv4, uint32_t interface);

    /**
     * IPv6 received a packet: it must have come from here.
     * \param packet the packet
     * \param ipv6 the stack
     * \param interface the interface
     */
    void CheckIpv6(Ptr<const Packet> packet, Ptr<Ipv6> ipv6, uint32_t interface);

    /**
     * A device was added to the node.
     * \param device the device
     */
    void DeviceAdded(Ptr<NetDevice> device);

    bool m_forwarded;        //!< Whether packets that are forwarded take resources.
    bool m_delivered;        //!< Whether packets for this node do.
    bool m_arp;              //!< Whether ARP does.
    uint32_t m_overhead;     //!< Bytes of a frame beyond the packet of IP.
    uint32_t m_leastFrame;   //!< Least bytes of a frame.

    Ptr<Node> m_node;                                       //!< The node.
    Ptr<TrafficControlLayer> m_stack;                       //!< What gets the packets in the end.
    Ptr<Ipv4> m_ipv4;                                       //!< Its IPv4, or null.
    Ptr<Ipv6> m_ipv6;                                       //!< Its IPv6, or null.
    Ptr<ResourceManager> m_manager;                         //!< Managers.
    std::vector<Ptr<TaskUnit>> m_units;                     //!< Task units.
    std::string m_entry;                                    //!< Entry of devices without one of their own.
    std::map<Ptr<NetDevice>, std::string> m_entries;        //!< Entries of devices.
    std::vector<TaskUnit*> m_first;                         //!< The same, resolved, by number of the device.
    std::vector<uint8_t> m_key;                             //!< Toeplitz key.
    std::vector<std::array<uint32_t, 256>> m_hashOf;        //!< Hash of each value of each byte with it.
    std::vector<uint32_t> m_indirection;                    //!< Queue numbers.
    bool m_isHandingUp{false};                              //!< Whether the stack above is called from here.
    bool m_isPowered{true};                                 //!< Whether packets that come are taken.
    bool m_isInstalled{false};                              //!< Whether devices may no longer be added.
    uint64_t m_offered{0};                                  //!< Packets that came.
    uint64_t m_served{0};                                   //!< Packets handed up after service.
    uint64_t m_dropped{0};                                  //!< Packets that found no room.
    uint64_t m_passedBy{0};                                 //!< Packets that took no resources.

    TracedCallback<Ptr<const Packet>, Time> m_sojourn;              //!< Sojourn times.
    TracedCallback<Ptr<const Packet>, const std::string&> m_drop;   //!< Packets lost, and where.
};

} // namespace ns3

#endif // ROUTER_RESOURCES_H
