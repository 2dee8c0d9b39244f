/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "resource-manager.h"

#include "ns3/log.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <tuple>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("ResourceManager");
NS_OBJECT_ENSURE_REGISTERED(ResourceManager);

namespace
{

/// Nobody holds a unit, nobody used it.
constexpr uint32_t NOBODY = UINT32_MAX;

/**
 * \param set a bit set
 * \return how many bits are set
 */
uint32_t
Count(uint64_t set)
{
    return static_cast<uint32_t>(__builtin_popcountll(set));
}

} // namespace

const char*
GetName(ResourceMessage message)
{
    switch (message)
    {
    case ResourceMessage::REQ:
        return "REQ";
    case ResourceMessage::REP:
        return "REP";
    case ResourceMessage::REL:
        return "REL";
    case ResourceMessage::REV:
        return "REV";
    }
    NS_FATAL_ERROR("message " << static_cast<int>(message) << ": known are REQ, REP, REL, REV");
}

TypeId
ResourceManager::GetTypeId()
{
    static TypeId tid = TypeId("ns3::ResourceManager")
                            .SetParent<Object>()
                            .SetGroupName("RouterResources")
                            .AddConstructor<ResourceManager>()
                            .AddTraceSource("Message",
                                            "A message between a task unit and a manager: REQ, REP, REL or REV.",
                                            MakeTraceSourceAccessor(&ResourceManager::m_message),
                                            "ns3::ResourceManager::MessageCallback");
    return tid;
}

ResourceManager::ResourceManager()
{
    NS_LOG_FUNCTION(this);
}

ResourceManager::~ResourceManager()
{
    NS_LOG_FUNCTION(this);
}

void
ResourceManager::DoDispose()
{
    m_pools.clear();
    m_lanes.clear();
    Object::DoDispose();
}

uint32_t
ResourceManager::AddPool(Ptr<ResourcePool> pool)
{
    NS_LOG_FUNCTION(this << pool->GetName());
    for (const auto& other : m_pools)
    {
        NS_ABORT_MSG_IF(other->GetName() == pool->GetName(),
                        "pool \"" << pool->GetName() << "\": there is one of that name already; names are unique");
    }
    pool->m_free = pool->m_units == 64 ? ~uint64_t{0} : (uint64_t{1} << pool->m_units) - 1;
    pool->m_lastTask.assign(pool->m_units, NOBODY);
    pool->m_holder.assign(pool->m_units, NOBODY);
    m_pools.push_back(pool);
    return m_pools.size() - 1;
}

uint32_t
ResourceManager::GetNPools() const
{
    return m_pools.size();
}

Ptr<ResourcePool>
ResourceManager::GetPool(uint32_t number) const
{
    return m_pools.at(number);
}

uint32_t
ResourceManager::AddClaim(const Claim& claim)
{
    for (const Need& need : claim.needs)
    {
        NS_ABORT_MSG_UNLESS(need.pool < m_pools.size(),
                            "task unit \"" << claim.name << "\": it needs pool number " << need.pool << ", and there are "
                                           << m_pools.size());
        const ResourcePool& pool = *m_pools[need.pool];
        const uint32_t most = Count(need.allowed & pool.m_free);
        NS_ABORT_MSG_UNLESS(need.units >= 1 && need.units <= most,
                            "task unit \"" << claim.name << "\": it needs " << need.units << " units of pool \""
                                           << pool.m_name << "\" at once; allowed is 1 to " << most);
    }
    m_claims.push_back(claim);
    std::sort(m_claims.back().needs.begin(), m_claims.back().needs.end(), [](const Need& a, const Need& b) {
        return a.pool < b.pool;
    });
    m_accounts.emplace_back();
    return m_claims.size() - 1;
}

uint32_t
ResourceManager::AddLane(uint32_t claim, Applicant* applicant)
{
    m_lanes.push_back({claim, applicant, {}, Time(0)});
    return m_lanes.size() - 1;
}

void
ResourceManager::Tell(ResourceMessage message, uint32_t lane, uint32_t pool, uint32_t unit)
{
    if (m_message.IsEmpty())
    {
        return;
    }
    const Lane& own = m_lanes[lane];
    m_message(Simulator::Now(),
              message,
              m_claims[own.claim].name,
              m_pools[pool]->m_name,
              unit,
              own.applicant->GetPacket(message));
}

void
ResourceManager::Apply(uint32_t lane)
{
    const uint32_t claim = m_lanes[lane].claim;
    for (const Need& need : m_claims[claim].needs)
    {
        const ResourcePool& pool = *m_pools[need.pool];
        if (pool.m_policy == ResourcePool::FAIR)
        {
            m_accounts[claim].virtualRuntime = std::max(m_accounts[claim].virtualRuntime, pool.m_virtualTime);
        }
        Tell(ResourceMessage::REQ, lane, need.pool, NO_UNIT);
    }
}

void
ResourceManager::Request(uint32_t lane)
{
    Apply(lane);
    if (auto overhead = TryGrant(lane))
    {
        m_lanes[lane].applicant->Granted(*overhead);
        return;
    }
    if (auto victims = FindVictims(lane))
    {
        std::vector<uint32_t> others;
        for (uint32_t victim : *victims)
        {
            others.push_back(m_lanes[victim].claim);
            Revoke(victim);
        }
        if (auto overhead = TryGrant(lane))
        {
            m_lanes[lane].applicant->Granted(*overhead);
            // Who was revoked may go on at once where another unit is free.
            for (uint32_t other : others)
            {
                Dispatch(other);
            }
            return;
        }
    }
    Enqueue(lane);
}

void
ResourceManager::Release(uint32_t lane, bool again, ResourceMessage kind)
{
    const uint32_t claim = m_lanes[lane].claim;
    TakeBack(lane, kind);
    if (again)
    {
        Apply(lane);
        if (!IsContested(lane))
        {
            if (auto overhead = TryGrant(lane))
            {
                m_lanes[lane].applicant->Granted(*overhead);
                return;
            }
        }
        Enqueue(lane);
    }
    Dispatch(claim);
}

bool
ResourceManager::Expire(uint32_t lane)
{
    if (!IsContested(lane))
    {
        return false;
    }
    Revoke(lane);
    Dispatch(m_lanes[lane].claim);
    return true;
}

Time
ResourceManager::GetQuantum(uint32_t claim) const
{
    Time least(0);
    for (const Need& need : m_claims[claim].needs)
    {
        const ResourcePool& pool = *m_pools[need.pool];
        const bool cuts = pool.m_policy == ResourcePool::ROUND_ROBIN || pool.m_policy == ResourcePool::FAIR;
        if (cuts && pool.m_quantum.IsStrictlyPositive() && (least.IsZero() || pool.m_quantum < least))
        {
            least = pool.m_quantum;
        }
    }
    return least;
}

bool
ResourceManager::IsContested(uint32_t lane) const
{
    const auto& needs = m_claims[m_lanes[lane].claim].needs;
    return std::any_of(needs.begin(), needs.end(), [this](const Need& need) {
        return !m_pools[need.pool]->m_waiting.empty();
    });
}

double
ResourceManager::BeginWork(uint32_t lane)
{
    double factor = 1.0;
    for (const Need& need : m_claims[m_lanes[lane].claim].needs)
    {
        ResourcePool& pool = *m_pools[need.pool];
        pool.m_working += need.units;
        if (!pool.m_contention.empty())
        {
            factor *= pool.m_contention[std::min<std::size_t>(pool.m_working, pool.m_contention.size()) - 1];
        }
    }
    return factor;
}

void
ResourceManager::EndWork(uint32_t lane)
{
    for (const Need& need : m_claims[m_lanes[lane].claim].needs)
    {
        m_pools[need.pool]->m_working -= need.units;
    }
}

bool
ResourceManager::Fits(const Claim& claim) const
{
    return std::all_of(claim.needs.begin(), claim.needs.end(), [this](const Need& need) {
        return Count(m_pools[need.pool]->m_free & need.allowed) >= need.units;
    });
}

uint32_t
ResourceManager::Choose(const ResourcePool& pool, uint32_t claim, const Need& need) const
{
    const uint64_t free = pool.m_free & need.allowed;
    const uint32_t last = m_accounts[claim].lastUnit;
    if (last < pool.m_units && (free >> last & 1) && pool.m_lastTask[last] == claim)
    {
        return last;
    }
    return static_cast<uint32_t>(__builtin_ctzll(free));
}

std::optional<Time>
ResourceManager::TryGrant(uint32_t lane)
{
    const uint32_t number = m_lanes[lane].claim;
    const Claim& claim = m_claims[number];
    if (!Fits(claim))
    {
        return std::nullopt;
    }
    Time overhead(0);
    for (std::size_t i = 0; i < claim.needs.size(); i++)
    {
        const Need& need = claim.needs[i];
        ResourcePool& pool = *m_pools[need.pool];
        pool.BeforeChange();
        for (uint32_t n = 0; n < need.units; n++)
        {
            const uint32_t unit = Choose(pool, number, need);
            pool.m_free &= ~(uint64_t{1} << unit);
            pool.m_held++;
            pool.m_holder[unit] = lane;
            if (pool.m_lastTask[unit] != number)
            {
                if (pool.m_lastTask[unit] != NOBODY)
                {
                    overhead += pool.m_switchCost;
                }
                pool.m_lastTask[unit] = number;
            }
            if (i == 0 && need.units == 1)
            {
                uint32_t& last = m_accounts[number].lastUnit;
                if (last != NO_UNIT && last != unit)
                {
                    overhead += pool.m_migrationCost;
                }
                last = unit;
            }
            m_lanes[lane].held.emplace_back(need.pool, unit);
            Tell(ResourceMessage::REP, lane, need.pool, unit);
        }
    }
    m_lanes[lane].heldSince = Simulator::Now();
    return overhead;
}

std::optional<std::vector<uint32_t>>
ResourceManager::FindVictims(uint32_t lane) const
{
    const Claim& claim = m_claims[m_lanes[lane].claim];
    std::vector<uint32_t> victims;
    for (const Need& need : claim.needs)
    {
        const ResourcePool& pool = *m_pools[need.pool];
        const auto unitsOf = [this, &need](uint32_t holder) {
            uint64_t set = 0;
            for (const auto& [number, unit] : m_lanes[holder].held)
            {
                set |= number == need.pool ? uint64_t{1} << unit : 0;
            }
            return set & need.allowed;
        };
        uint64_t available = pool.m_free & need.allowed;
        for (uint32_t victim : victims)
        {
            available |= unitsOf(victim);
        }
        if (Count(available) >= need.units)
        {
            continue;
        }
        if (pool.m_policy != ResourcePool::PREEMPTIVE)
        {
            return std::nullopt;
        }
        std::vector<uint32_t> candidates;
        for (uint32_t unit = 0; unit < pool.m_units; unit++)
        {
            const uint32_t holder = pool.m_holder[unit];
            if ((need.allowed >> unit & 1) && holder != NOBODY &&
                m_claims[m_lanes[holder].claim].priority < claim.priority &&
                std::find(victims.begin(), victims.end(), holder) == victims.end() &&
                std::find(candidates.begin(), candidates.end(), holder) == candidates.end())
            {
                candidates.push_back(holder);
            }
        }
        // The least urgent first, among equals the one that holds its units for the shortest time.
        std::sort(candidates.begin(), candidates.end(), [this](uint32_t a, uint32_t b) {
            const auto order = [this](uint32_t each) {
                return std::make_tuple(m_claims[m_lanes[each].claim].priority,
                                       -m_lanes[each].heldSince.GetTimeStep(),
                                       each);
            };
            return order(a) < order(b);
        });
        for (uint32_t candidate : candidates)
        {
            if (Count(available) >= need.units)
            {
                break;
            }
            available |= unitsOf(candidate);
            victims.push_back(candidate);
        }
        if (Count(available) < need.units)
        {
            return std::nullopt;
        }
    }
    return victims;
}

void
ResourceManager::TakeBack(uint32_t lane, ResourceMessage kind)
{
    Lane& own = m_lanes[lane];
    const Time held = Simulator::Now() - own.heldSince;
    // In ticks, which are whole: equals stay equal, and the oldest of them comes first.
    m_accounts[own.claim].virtualRuntime += static_cast<double>(held.GetTimeStep()) / m_claims[own.claim].weight;
    for (const auto& [number, unit] : own.held)
    {
        ResourcePool& pool = *m_pools[number];
        pool.BeforeChange();
        pool.m_free |= uint64_t{1} << unit;
        pool.m_held--;
        pool.m_holder[unit] = NOBODY;
        Tell(kind, lane, number, unit);
    }
    own.held.clear();
}

void
ResourceManager::Revoke(uint32_t lane)
{
    m_lanes[lane].applicant->Revoked();
    TakeBack(lane, ResourceMessage::REV);
    Enqueue(lane);
}

void
ResourceManager::Enqueue(uint32_t lane)
{
    for (const Need& need : m_claims[m_lanes[lane].claim].needs)
    {
        ResourcePool& pool = *m_pools[need.pool];
        pool.m_waiting.push_back(lane);
        for (uint32_t holder : pool.m_holder)
        {
            if (holder != NOBODY)
            {
                m_lanes[holder].applicant->Contested();
            }
        }
    }
}

void
ResourceManager::Dispatch(uint32_t claim)
{
    // By number: a grant may add nothing to the claim, but it may grow the vectors that hold it.
    for (std::size_t i = 0; i < m_claims[claim].needs.size(); i++)
    {
        const uint32_t pool = m_claims[claim].needs[i].pool;
        while (auto lane = TakeNextWaiting(pool))
        {
            auto overhead = TryGrant(*lane);
            NS_ASSERT_MSG(overhead, "a lane that fits can be granted");
            m_lanes[*lane].applicant->Granted(*overhead);
        }
    }
}

std::optional<uint32_t>
ResourceManager::TakeNextWaiting(uint32_t pool)
{
    ResourcePool& own = *m_pools[pool];
    if (own.m_waiting.empty() || own.m_free == 0)
    {
        return std::nullopt;
    }
    std::optional<uint32_t> chosen;
    for (uint32_t lane : own.m_waiting)
    {
        const uint32_t claim = m_lanes[lane].claim;
        if (!Fits(m_claims[claim]))
        {
            continue;
        }
        if (!chosen)
        {
            chosen = lane;
            if (own.m_policy == ResourcePool::FIFO || own.m_policy == ResourcePool::ROUND_ROBIN)
            {
                break;
            }
            continue;
        }
        // Of equals the oldest is kept.
        const uint32_t best = m_lanes[*chosen].claim;
        const bool isBetter = own.m_policy == ResourcePool::FAIR
                                  ? m_accounts[claim].virtualRuntime < m_accounts[best].virtualRuntime
                                  : m_claims[claim].priority > m_claims[best].priority;
        if (isBetter)
        {
            chosen = lane;
        }
    }
    if (!chosen)
    {
        return std::nullopt;
    }
    const Claim& claim = m_claims[m_lanes[*chosen].claim];
    own.m_virtualTime = std::max(own.m_virtualTime, m_accounts[m_lanes[*chosen].claim].virtualRuntime);
    for (const Need& need : claim.needs)
    {
        auto& waiting = m_pools[need.pool]->m_waiting;
        waiting.erase(std::remove(waiting.begin(), waiting.end(), *chosen), waiting.end());
    }
    return chosen;
}

} // namespace ns3
