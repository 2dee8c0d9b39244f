/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef TASK_UNIT_H
#define TASK_UNIT_H

#include "resource-manager.h"

#include "ns3/address.h"
#include "ns3/event-id.h"
#include "ns3/net-device.h"
#include "ns3/nstime.h"
#include "ns3/object.h"
#include "ns3/packet.h"
#include "ns3/random-variable-stream.h"

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace ns3
{

class RouterResources;

/**
 * \ingroup router-resources
 *
 * A packet inside the router, with what its node's protocol handler was called with.
 */
struct RouterPacket
{
    Ptr<NetDevice> device;              //!< Device that received it.
    Ptr<const Packet> packet;           //!< The packet, without the header of the link.
    uint16_t protocol{0};               //!< Ethertype.
    Address from;                       //!< Who sent it.
    Address to;                         //!< To whom.
    NetDevice::PacketType type{};       //!< Whether it is for this host.
    Time received;                      //!< When it came to the node.
    uint32_t frameBytes{0};             //!< Ethernet frame, with FCS, without preamble and gap.
    int64_t hash{-1};                   //!< Toeplitz hash of its headers; below 0: not computed yet.
};

/**
 * \ingroup router-resources
 *
 * A function of the router: a finite queue, a need for resources, a service time, a way on (Meyer et al. 2014,
 * sec. IV-C.1). It asks its managers for units when it has a packet, serves when it has them, and gives them back.
 *
 * The service time of a frame of S bytes is x = PerPacket + S PerByte (eq. 3 of the paper) or what a table over frame
 * sizes says, times the factors of contention of its pools, times a random factor of mean 1 where one is set.
 */
class TaskUnit : public Object
{
  public:
    /// When it works.
    enum Activation
    {
        DEDICATED, //!< When it has a packet.
        POLLING,   //!< Always: it never gives its units back.
        INTERRUPT  //!< Linux NAPI: an interrupt, then polls of at most Budget packets until one comes back short.
    };

    /// Where packets go next.
    enum RouteKind
    {
        SINGLE,      //!< Always to the first target.
        RSS,         //!< By the Toeplitz hash of the packet's addresses and ports.
        ROUND_ROBIN, //!< In turn.
        RANDOM       //!< By chance, with weights.
    };

    /// How times that are no whole number of ticks of ns-3's clock are cut.
    enum Rounding
    {
        NEAREST, //!< To the nearest tick.
        DOWN     //!< To the tick before.
    };

    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();
    TaskUnit();
    ~TaskUnit() override;

    /**
     * \return its name, which is unique among the task units of a node
     */
    std::string GetName() const;

    /**
     * Say that it needs units of a pool for each grant, all granted at once with its other needs.
     *
     * \param pool name of the pool
     * \param units how many
     * \param pin units of the pool that it may use; empty: all
     */
    void AddNeed(const std::string& pool, uint32_t units = 1, const std::vector<uint32_t>& pin = {});

    /**
     * Set the service time by a table instead of PerPacket and PerByte: linear between its sizes, constant outside.
     *
     * \param table frame sizes [B], rising, and service times [s]
     */
    void SetServiceTable(const std::vector<std::pair<uint32_t, double>>& table);

    /**
     * Set where packets go next; without this they leave the router here.
     *
     * \param kind how a target is chosen
     * \param targets names of task units
     * \param weights chances of the targets, for RANDOM
     */
    void SetRoute(RouteKind kind, const std::vector<std::string>& targets, const std::vector<double>& weights = {});

    /**
     * \param frameBytes size of a frame [B]
     * \return mean service time without contention [s]
     */
    double GetServiceSeconds(uint32_t frameBytes) const;

    /**
     * \return packets that came
     */
    uint64_t GetArrived() const;

    /**
     * \return packets that found the queue full
     */
    uint64_t GetDropped() const;

    /**
     * \return packets that were served
     */
    uint64_t GetServed() const;

    /**
     * \return packets that wait or are served now
     */
    uint64_t GetInside() const;

    /**
     * \return interrupts raised so far
     */
    uint64_t GetInterrupts() const;

    /**
     * Assign fixed random variable streams.
     * \param stream first stream to use
     * \return how many were used
     */
    int64_t AssignStreams(int64_t stream);

  protected:
    void DoDispose() override;

  private:
    friend class RouterResources;

    /// What a lane is doing.
    enum class State
    {
        IDLE,       //!< Nothing.
        REQUESTING, //!< Waits for its units.
        WORKING,    //!< Serves a packet.
        HOLDING     //!< Has its units and nothing to do (POLLING).
    };

    /// One of the packets that a task unit serves at a time.
    struct Lane : public ResourceManager::Applicant
    {
        void Granted(Time overhead) override;
        void Revoked() override;
        void Contested() override;
        Ptr<const Packet> GetPacket(ResourceMessage message) const override;

        TaskUnit* unit{nullptr};         //!< Whose it is.
        uint32_t number{0};              //!< Its number among the managers' lanes.
        State state{State::IDLE};        //!< What it does.
        bool hasPacket{false};           //!< Whether it serves one.
        RouterPacket packet;             //!< That one, or the last one.
        std::deque<RouterPacket> batch;  //!< Packets of the same batch that come after it.
        uint32_t polled{0};              //!< Packets that the present poll took.
        double factor{1.0};              //!< Contention, for the present work.
        double left{-1.0};               //!< Work that is left after a revoke [ticks]; below 0: none.
        bool isInterrupted{false};       //!< Whether an interrupt has to be paid.
        Time workEnd;                    //!< When its work is done.
        Time quantumEnd;                 //!< When its time is up.
        EventId event;                   //!< End of work or of time.
    };

    /**
     * Prepares for the first packet: resolves names.
     * \param router the router
     */
    void Start(RouterResources& router);

    /**
     * A packet comes.
     * \param packet the packet
     */
    void Receive(RouterPacket&& packet);

    /// Asks for the units that it will never give back.
    void BeginToPoll();

    /// Sees to it that the packets of the queue will be served.
    void Wake();

    /// An interrupt is raised.
    void Interrupt();

    /**
     * A lane asks for its units.
     * \param lane the lane
     */
    void Request(Lane& lane);

    /**
     * Takes a batch from the queue and starts on it.
     * \param lane the lane
     * \param extra work that comes first [ticks]
     */
    void Poll(Lane& lane, double extra);

    /**
     * Starts on a packet.
     * \param lane the lane
     * \param packet the packet
     * \param extra work that comes first [ticks]
     */
    void Serve(Lane& lane, RouterPacket&& packet, double extra);

    /**
     * Puts a lane's units to work.
     * \param lane the lane
     * \param work without contention [ticks]
     */
    void Work(Lane& lane, double work);

    /**
     * A lane's work, or its time, is over.
     * \param lane the lane
     */
    void Fire(Lane* lane);

    /**
     * A batch is done.
     * \param lane the lane
     */
    void EndOfPoll(Lane& lane);

    /**
     * REL, and REQ anew where there is more.
     * \param lane the lane
     * \param again whether there is more
     */
    void GiveBack(Lane& lane, bool again);

    /**
     * Schedules the event of a lane that works.
     * \param lane the lane
     */
    void Schedule(Lane& lane);

    /**
     * Hands a packet to the next task unit, or out.
     * \param packet the packet
     */
    void MoveOn(RouterPacket&& packet);

    /**
     * \param work a time [ticks]
     * \return the same in whole ticks
     */
    Time Cut(double work) const;

    std::string m_name;               //!< Name.
    uint32_t m_queueSize;             //!< Packets that can wait.
    int32_t m_priority;               //!< Larger is more urgent.
    double m_weight;                  //!< Share under the policy FAIR.
    double m_perPacket;               //!< Cost of a packet [s].
    double m_perByte;                 //!< Cost of a byte of its frame [s].
    double m_perBatch;                //!< Cost of a batch [s].
    uint32_t m_batch;                 //!< Most packets served per grant.
    uint32_t m_parallel;              //!< Packets in service at once.
    Activation m_activation;          //!< When it works.
    uint32_t m_budget;                //!< Most packets of a poll.
    double m_interruptCost;           //!< Cost of an interrupt [s].
    Time m_moderation;                //!< Least time between two interrupts.
    Rounding m_rounding;              //!< How times are cut.
    Ptr<RandomVariableStream> m_variation; //!< Factor on each service time, of mean 1; null: none.

    /// A need, by name until the first packet comes.
    struct NamedNeed
    {
        std::string pool;          //!< Name of the pool.
        uint32_t units;            //!< How many.
        std::vector<uint32_t> pin; //!< Which; empty: all.
    };

    std::vector<NamedNeed> m_needs;                     //!< Needs.
    std::vector<std::pair<uint32_t, double>> m_table;   //!< Frame sizes and service times [s].
    RouteKind m_routeKind{SINGLE};                      //!< How targets are chosen.
    std::vector<std::string> m_targets;                 //!< Names of task units; none: packets leave.
    std::vector<double> m_weights;                      //!< Chances, for RANDOM.
    Ptr<UniformRandomVariable> m_choice;                //!< For RANDOM.

    RouterResources* m_router{nullptr};         //!< The router.
    Ptr<ResourceManager> m_managers;            //!< Its managers.
    std::vector<TaskUnit*> m_next;              //!< Targets.
    uint32_t m_turn{0};                         //!< For ROUND_ROBIN.
    double m_ticksPerSecond{1e9};               //!< Of ns-3's clock.
    Time m_quantum;                             //!< Longest grant; 0: for ever.
    bool m_needsUnits{false};                   //!< Whether it has managers to ask.
    uint32_t m_most{1};                         //!< Packets of a batch.
    std::deque<RouterPacket> m_queue;           //!< Packets that wait.
    std::vector<std::unique_ptr<Lane>> m_lanes; //!< What serves them.
    std::vector<Lane*> m_idle;                  //!< Lanes that do nothing.
    uint32_t m_requesting{0};                   //!< Lanes that wait for units.
    bool m_interruptsOn{true};                  //!< Whether a packet raises an interrupt.
    bool m_wasInterrupted{false};               //!< Whether there was an interrupt yet.
    Time m_lastInterrupt;                       //!< When.
    EventId m_timer;                            //!< Interrupt to come.
    uint64_t m_arrived{0};                      //!< Packets that came.
    uint64_t m_dropped{0};                      //!< Packets that found no room.
    uint64_t m_served{0};                       //!< Packets served.
    uint64_t m_interrupts{0};                   //!< Interrupts.
};

} // namespace ns3

#endif // TASK_UNIT_H
