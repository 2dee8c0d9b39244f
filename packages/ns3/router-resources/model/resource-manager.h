/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef RESOURCE_MANAGER_H
#define RESOURCE_MANAGER_H

#include "resource-pool.h"

#include "ns3/nstime.h"
#include "ns3/object.h"
#include "ns3/packet.h"
#include "ns3/traced-callback.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ns3
{

/// A message between a task unit and a resource manager (Meyer et al. 2014, sec. IV-C.3).
enum class ResourceMessage : uint8_t
{
    REQ, //!< ResourceRequest: a task unit applies for units of a pool.
    REP, //!< ResourceReply: the manager grants a unit.
    REL, //!< ResourceRelease: the task unit gives a unit back.
    REV  //!< ResourceRevoke: the manager takes a unit away.
};

/**
 * \param message a message
 * \return its name: REQ, REP, REL or REV
 */
const char* GetName(ResourceMessage message);

/**
 * \ingroup router-resources
 *
 * The resource managers of a node: the local one of each pool, and the global one, which grants a request for several
 * pools only when all of them can be granted, at one instant and in the order of the pools. So nobody holds one
 * resource while waiting for another, and there is no deadlock.
 *
 * Managers and their messages take no simulated time. A request that cannot be granted does not block younger ones
 * that can. After a REV the task unit keeps what is left of its work and waits again without a new REQ; the REP that
 * it gets is the answer to its first request.
 */
class ResourceManager : public Object
{
  public:
    /// The unit of a request, which names none.
    static constexpr uint32_t NO_UNIT = UINT32_MAX;

    /// Units of a pool that a task unit needs.
    struct Need
    {
        uint32_t pool;    //!< Number of the pool.
        uint32_t units;   //!< How many.
        uint64_t allowed; //!< Which it may use, as a bit set.
    };

    /// What a task unit asks for.
    struct Claim
    {
        std::vector<Need> needs; //!< By pool, in the order of the pools.
        int32_t priority{0};     //!< Larger is more urgent.
        double weight{1.0};      //!< Share under the policy FAIR.
        std::string name;        //!< Name of the task unit.
    };

    /// What a lane, one of the packets that a task unit serves at a time, does when its managers speak to it.
    class Applicant
    {
      public:
        virtual ~Applicant() = default;
        /**
         * A grant.
         * \param overhead work that comes first: switching and migration
         */
        virtual void Granted(Time overhead) = 0;
        /// Its units are about to be taken away: it keeps what is left of its work.
        virtual void Revoked() = 0;
        /// Somebody waits for units that it holds.
        virtual void Contested() = 0;
        /**
         * \param message kind of a message
         * \return the packet that it is about, for the trace; null where there is none
         */
        virtual Ptr<const Packet> GetPacket(ResourceMessage message) const = 0;
    };

    /**
     * TracedCallback signature of messages.
     *
     * \param time when
     * \param message what kind
     * \param taskUnit name of the task unit
     * \param pool name of the pool
     * \param unit number of the unit, NO_UNIT of a request
     * \param packet what is served, null where there is none
     */
    typedef void (*MessageCallback)(Time time,
                                    ResourceMessage message,
                                    const std::string& taskUnit,
                                    const std::string& pool,
                                    uint32_t unit,
                                    Ptr<const Packet> packet);

    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();
    ResourceManager();
    ~ResourceManager() override;

    /**
     * Take a pool under management.
     * \param pool the pool
     * \return its number
     */
    uint32_t AddPool(Ptr<ResourcePool> pool);

    /**
     * \return the number of pools
     */
    uint32_t GetNPools() const;

    /**
     * \param number number of a pool
     * \return the pool
     */
    Ptr<ResourcePool> GetPool(uint32_t number) const;

    /**
     * Register what a task unit asks for.
     * \param claim the claim, whose pools are those of this manager
     * \return its number
     */
    uint32_t AddClaim(const Claim& claim);

    /**
     * Register a lane of a task unit.
     * \param claim number of the task unit's claim
     * \param applicant who is told
     * \return its number
     */
    uint32_t AddLane(uint32_t claim, Applicant* applicant);

    /**
     * REQ, and REP at once where units are free or can be revoked; else the lane waits.
     * \param lane the lane
     */
    void Request(uint32_t lane);

    /**
     * REL: a lane gives its units back, and the managers serve whoever waits.
     * \param lane the lane
     * \param again whether it asks anew at once, behind those that wait
     * \param kind REL, or REV where its time is up
     */
    void Release(uint32_t lane, bool again, ResourceMessage kind = ResourceMessage::REL);

    /**
     * The longest grant of a lane is over: REV where others wait.
     * \param lane the lane
     * \return whether its units were taken away
     */
    bool Expire(uint32_t lane);

    /**
     * \param claim number of a claim
     * \return the longest time that it may hold its units while others wait; 0: for ever
     */
    Time GetQuantum(uint32_t claim) const;

    /**
     * \param lane a lane
     * \return whether anybody waits for a unit of its pools
     */
    bool IsContested(uint32_t lane) const;

    /**
     * A lane's units begin to work.
     * \param lane the lane
     * \return the factor on its service time for the units that now work
     */
    double BeginWork(uint32_t lane);

    /**
     * A lane's units stop working.
     * \param lane the lane
     */
    void EndWork(uint32_t lane);

  protected:
    void DoDispose() override;

  private:
    /// A lane, as the managers see it.
    struct Lane
    {
        uint32_t claim;                                  //!< Number of its claim.
        Applicant* applicant;                            //!< Who is told.
        std::vector<std::pair<uint32_t, uint32_t>> held; //!< Pool and unit.
        Time heldSince;                                  //!< Since when.
    };

    /// What is kept of each task unit.
    struct Account
    {
        double virtualRuntime{0.0};  //!< Service received over its weight [ticks] (FAIR).
        uint32_t lastUnit{NO_UNIT};  //!< Unit of its first pool that it used last.
    };

    /**
     * \param claim a claim
     * \return whether every pool has units for it now
     */
    bool Fits(const Claim& claim) const;

    /**
     * REP: grants a lane's claim if it fits.
     * \param lane the lane
     * \return the work that switching and migration cost; none if it does not fit
     */
    std::optional<Time> TryGrant(uint32_t lane);

    /**
     * \param pool a pool
     * \param claim number of a claim
     * \param need which of its needs
     * \return the unit to take: the one that served this task unit last, else the first free
     */
    uint32_t Choose(const ResourcePool& pool, uint32_t claim, const Need& need) const;

    /**
     * \param lane a lane that wants units
     * \return lanes to revoke so that its claim fits, the least urgent first; none if that is not enough
     */
    std::optional<std::vector<uint32_t>> FindVictims(uint32_t lane) const;

    /**
     * REL or REV: takes a lane's units back.
     * \param lane the lane
     * \param kind which of the two
     */
    void TakeBack(uint32_t lane, ResourceMessage kind);

    /**
     * REV: a lane loses its units and waits for others.
     * \param lane the lane
     */
    void Revoke(uint32_t lane);

    /**
     * Puts a lane on the waiting lists of its pools.
     * \param lane the lane
     */
    void Enqueue(uint32_t lane);

    /**
     * Records a request.
     * \param lane the lane
     */
    void Apply(uint32_t lane);

    /**
     * Serves the waiting lists of all pools of a claim.
     * \param claim number of the claim
     */
    void Dispatch(uint32_t claim);

    /**
     * \param pool number of a pool
     * \return the lane that its policy serves next, taken off all waiting lists; none if none fits
     */
    std::optional<uint32_t> TakeNextWaiting(uint32_t pool);

    /**
     * Tells a message to whoever traces.
     * \param message its kind
     * \param lane whose
     * \param pool number of the pool
     * \param unit the unit
     */
    void Tell(ResourceMessage message, uint32_t lane, uint32_t pool, uint32_t unit);

    std::vector<Ptr<ResourcePool>> m_pools; //!< Pools.
    std::vector<Claim> m_claims;            //!< What task units ask for.
    std::vector<Account> m_accounts;        //!< What is kept of each, by claim.
    std::vector<Lane> m_lanes;              //!< Lanes.

    /// Messages.
    TracedCallback<Time, ResourceMessage, const std::string&, const std::string&, uint32_t, Ptr<const Packet>> m_message;
};

} // namespace ns3

#endif // RESOURCE_MANAGER_H
