/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */

#include "resource-pool.h"

#include "router-resources-compat.h"

#include "ns3/double.h"
#include "ns3/log.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("ResourcePool");
NS_OBJECT_ENSURE_REGISTERED(ResourcePool);

TypeId
ResourcePool::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::ResourcePool")
            .SetParent<Object>()
            .SetGroupName("RouterResources")
            .AddConstructor<ResourcePool>()
            .AddAttribute("Name",
                          "Name, unique among the pools of a node.",
                          StringValue("cpu"),
                          MakeStringAccessor(&ResourcePool::m_name),
                          MakeStringChecker())
            .AddAttribute("Units",
                          "How many units.",
                          UintegerValue(1),
                          MakeUintegerAccessor(&ResourcePool::m_units),
                          MakeUintegerChecker<uint32_t>(1, MOST_UNITS))
            .AddAttribute("Policy",
                          "Who gets the next unit.",
                          EnumValue(FIFO),
                          ROUTER_RESOURCES_ENUM_ACCESSOR(Policy, &ResourcePool::m_policy),
                          MakeEnumChecker(FIFO,
                                          "Fifo",
                                          PRIORITY,
                                          "Priority",
                                          PREEMPTIVE,
                                          "Preemptive",
                                          ROUND_ROBIN,
                                          "RoundRobin",
                                          FAIR,
                                          "Fair"))
            .AddAttribute("Quantum",
                          "Longest grant under RoundRobin and Fair while others wait; 0: a batch is not cut off.",
                          TimeValue(Time(0)),
                          MakeTimeAccessor(&ResourcePool::m_quantum),
                          MakeTimeChecker(Time(0)))
            .AddAttribute("SwitchCost",
                          "Work lost when a unit turns to another task unit.",
                          TimeValue(Time(0)),
                          MakeTimeAccessor(&ResourcePool::m_switchCost),
                          MakeTimeChecker(Time(0)))
            .AddAttribute("MigrationCost",
                          "Work lost when a task unit goes on at another unit than its last one.",
                          TimeValue(Time(0)),
                          MakeTimeAccessor(&ResourcePool::m_migrationCost),
                          MakeTimeChecker(Time(0)))
            .AddAttribute("ActivePower",
                          "Power of a unit while it is granted [W].",
                          DoubleValue(0.0),
                          MakeDoubleAccessor(&ResourcePool::m_activePower),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("IdlePower",
                          "Power of a unit while it is not granted [W].",
                          DoubleValue(0.0),
                          MakeDoubleAccessor(&ResourcePool::m_idlePower),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("BasePower",
                          "Power of the pool whatever its units do [W].",
                          DoubleValue(0.0),
                          MakeDoubleAccessor(&ResourcePool::m_basePower),
                          MakeDoubleChecker<double>(0.0));
    return tid;
}

ResourcePool::ResourcePool()
    : m_madeAt(Simulator::Now().GetTimeStep()),
      m_bookedAt(m_madeAt)
{
    NS_LOG_FUNCTION(this);
}

ResourcePool::~ResourcePool()
{
    NS_LOG_FUNCTION(this);
}

std::string
ResourcePool::GetName() const
{
    return m_name;
}

uint32_t
ResourcePool::GetUnits() const
{
    return m_units;
}

void
ResourcePool::SetContention(const std::vector<double>& factors)
{
    for (std::size_t k = 0; k < factors.size(); k++)
    {
        NS_ABORT_MSG_UNLESS(factors[k] > 0.0,
                            "pool \"" << m_name << "\": the factor of contention for " << k + 1 << " working units is "
                                      << factors[k] << ": allowed is more than 0");
    }
    m_contention = factors;
}

double
ResourcePool::GetEnergy() const
{
    Book();
    const double second = static_cast<double>(Seconds(1).GetTimeStep());
    const double all = static_cast<double>(m_bookedAt - m_madeAt) / second;
    const double held = static_cast<double>(m_heldTicks) / second;
    return all * (m_basePower + m_units * m_idlePower) + held * (m_activePower - m_idlePower);
}

double
ResourcePool::GetPower() const
{
    return m_basePower + m_units * m_idlePower + static_cast<double>(m_held) * (m_activePower - m_idlePower);
}

Time
ResourcePool::GetHeldTime() const
{
    Book();
    return TimeStep(static_cast<uint64_t>(m_heldTicks));
}

void
ResourcePool::Book() const
{
    const int64_t now = Simulator::Now().GetTimeStep();
    m_heldTicks += m_held * (now - m_bookedAt);
    m_bookedAt = now;
}

void
ResourcePool::BeforeChange() const
{
    Book();
    if (!m_beforeChange.IsNull())
    {
        m_beforeChange();
    }
}

} // namespace ns3
