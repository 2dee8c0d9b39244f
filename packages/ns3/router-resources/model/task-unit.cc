/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "task-unit.h"

#include "router-resources-compat.h"
#include "router-resources.h"

#include "ns3/double.h"
#include "ns3/integer.h"
#include "ns3/log.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("TaskUnit");
NS_OBJECT_ENSURE_REGISTERED(TaskUnit);

TypeId
TaskUnit::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::TaskUnit")
            .SetParent<Object>()
            .SetGroupName("RouterResources")
            .AddConstructor<TaskUnit>()
            .AddAttribute("Name",
                          "Name, unique among the task units of a node.",
                          StringValue("core"),
                          MakeStringAccessor(&TaskUnit::m_name),
                          MakeStringChecker())
            .AddAttribute("QueueSize",
                          "Packets that can wait, those in service not counted; more are dropped.",
                          UintegerValue(512),
                          MakeUintegerAccessor(&TaskUnit::m_queueSize),
                          MakeUintegerChecker<uint32_t>(1))
            .AddAttribute("Priority",
                          "Larger is more urgent (policies Priority and Preemptive).",
                          IntegerValue(0),
                          MakeIntegerAccessor(&TaskUnit::m_priority),
                          MakeIntegerChecker<int32_t>())
            .AddAttribute("Weight",
                          "Share under the policy Fair.",
                          DoubleValue(1.0),
                          MakeDoubleAccessor(&TaskUnit::m_weight),
                          MakeDoubleChecker<double>(std::numeric_limits<double>::min()))
            .AddAttribute("PerPacket",
                          "T_c of eq. 3: service time of a packet, whatever its size [s].",
                          DoubleValue(0.0),
                          MakeDoubleAccessor(&TaskUnit::m_perPacket),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("PerByte",
                          "T_d of eq. 3: service time of a byte of the frame [s].",
                          DoubleValue(0.0),
                          MakeDoubleAccessor(&TaskUnit::m_perByte),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("PerBatch",
                          "Time that opens a batch [s].",
                          DoubleValue(0.0),
                          MakeDoubleAccessor(&TaskUnit::m_perBatch),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("Batch",
                          "Most packets served per grant; Interrupt takes Budget instead.",
                          UintegerValue(1),
                          MakeUintegerAccessor(&TaskUnit::m_batch),
                          MakeUintegerChecker<uint32_t>(1))
            .AddAttribute("Parallel",
                          "Packets (or batches) in service at once, each on units of its own.",
                          UintegerValue(1),
                          MakeUintegerAccessor(&TaskUnit::m_parallel),
                          MakeUintegerChecker<uint32_t>(1, 1 << 21))
            .AddAttribute("Activation",
                          "When it works.",
                          EnumValue(DEDICATED),
                          ROUTER_RESOURCES_ENUM_ACCESSOR(Activation, &TaskUnit::m_activation),
                          MakeEnumChecker(DEDICATED, "Dedicated", POLLING, "Polling", INTERRUPT, "Interrupt"))
            .AddAttribute("Budget",
                          "Most packets of a poll (Interrupt).",
                          UintegerValue(64),
                          MakeUintegerAccessor(&TaskUnit::m_budget),
                          MakeUintegerChecker<uint32_t>(1))
            .AddAttribute("InterruptCost",
                          "Time that an interrupt costs [s].",
                          DoubleValue(0.0),
                          MakeDoubleAccessor(&TaskUnit::m_interruptCost),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("Moderation",
                          "Least time between two interrupts.",
                          TimeValue(Time(0)),
                          MakeTimeAccessor(&TaskUnit::m_moderation),
                          MakeTimeChecker(Time(0)))
            .AddAttribute("Rounding",
                          "How service times are cut to ticks of ns-3's clock.",
                          EnumValue(NEAREST),
                          ROUTER_RESOURCES_ENUM_ACCESSOR(Rounding, &TaskUnit::m_rounding),
                          MakeEnumChecker(NEAREST, "Nearest", DOWN, "Down"))
            .AddAttribute("Variation",
                          "Factor on each service time, of mean 1, such as ns3::ExponentialRandomVariable[Mean=1].",
                          PointerValue(),
                          MakePointerAccessor(&TaskUnit::m_variation),
                          MakePointerChecker<RandomVariableStream>());
    return tid;
}

TaskUnit::TaskUnit()
{
    NS_LOG_FUNCTION(this);
}

TaskUnit::~TaskUnit()
{
    NS_LOG_FUNCTION(this);
}

void
TaskUnit::DoDispose()
{
    m_timer.Cancel();
    for (auto& lane : m_lanes)
    {
        lane->event.Cancel();
    }
    m_lanes.clear();
    m_idle.clear();
    m_queue.clear();
    m_next.clear();
    m_managers = nullptr;
    m_router = nullptr;
    m_variation = nullptr;
    m_choice = nullptr;
    Object::DoDispose();
}

std::string
TaskUnit::GetName() const
{
    return m_name;
}

void
TaskUnit::AddNeed(const std::string& pool, uint32_t units, const std::vector<uint32_t>& pin)
{
    NS_ABORT_MSG_IF(m_router, "task unit \"" << m_name << "\": it is at work already; needs are said before");
    m_needs.push_back({pool, units, pin});
}

void
TaskUnit::SetServiceTable(const std::vector<std::pair<uint32_t, double>>& table)
{
    NS_ABORT_MSG_IF(table.empty(), "task unit \"" << m_name << "\": a table of service times needs a row at least");
    for (std::size_t row = 0; row < table.size(); row++)
    {
        NS_ABORT_MSG_IF(row > 0 && table[row].first <= table[row - 1].first,
                        "task unit \"" << m_name << "\": row " << row + 1 << " of its service times is for "
                                       << table[row].first << " B after " << table[row - 1].first
                                       << " B; sizes must rise");
        NS_ABORT_MSG_UNLESS(table[row].second >= 0.0 && std::isfinite(table[row].second),
                            "task unit \"" << m_name << "\": row " << row + 1 << " of its service times is "
                                           << table[row].second << " s; allowed is 0 or more");
    }
    m_table = table;
}

void
TaskUnit::SetRoute(RouteKind kind, const std::vector<std::string>& targets, const std::vector<double>& weights)
{
    NS_ABORT_MSG_IF(m_router, "task unit \"" << m_name << "\": it is at work already; its way is said before");
    NS_ABORT_MSG_IF(kind == RANDOM && weights.size() != targets.size(),
                    "task unit \"" << m_name << "\": a random way has a weight for each target; got " << weights.size()
                                   << " for " << targets.size());
    m_routeKind = kind;
    m_targets = targets;
    m_weights = weights;
}

double
TaskUnit::GetServiceSeconds(uint32_t frameBytes) const
{
    if (m_table.empty())
    {
        return m_perPacket + m_perByte * frameBytes;
    }
    const auto above = std::lower_bound(m_table.begin(), m_table.end(), frameBytes, [](const auto& row, uint32_t size) {
        return row.first < size;
    });
    if (above == m_table.begin())
    {
        return above->second;
    }
    const auto below = above - 1;
    if (above == m_table.end())
    {
        return below->second;
    }
    const double share = double(frameBytes - below->first) / double(above->first - below->first);
    return below->second + share * (above->second - below->second);
}

uint64_t
TaskUnit::GetArrived() const
{
    return m_arrived;
}

uint64_t
TaskUnit::GetDropped() const
{
    return m_dropped;
}

uint64_t
TaskUnit::GetServed() const
{
    return m_served;
}

uint64_t
TaskUnit::GetInside() const
{
    uint64_t inside = m_queue.size();
    for (const auto& lane : m_lanes)
    {
        inside += lane->batch.size() + (lane->hasPacket ? 1 : 0);
    }
    return inside;
}

uint64_t
TaskUnit::GetInterrupts() const
{
    return m_interrupts;
}

int64_t
TaskUnit::AssignStreams(int64_t stream)
{
    int64_t used = 0;
    if (m_variation)
    {
        m_variation->SetStream(stream + used++);
    }
    if (m_routeKind == RANDOM)
    {
        m_choice = CreateObject<UniformRandomVariable>();
        m_choice->SetStream(stream + used++);
    }
    return used;
}

void
TaskUnit::Start(RouterResources& router)
{
    NS_LOG_FUNCTION(this << m_name);
    m_router = &router;
    m_managers = router.GetManager();
    m_ticksPerSecond = static_cast<double>(Seconds(1).GetTimeStep());
    ResourceManager::Claim claim;
    claim.priority = m_priority;
    claim.weight = m_weight;
    claim.name = m_name;
    for (const NamedNeed& need : m_needs)
    {
        const uint32_t pool = router.FindPool(need.pool, "task unit \"" + m_name + "\"");
        const uint32_t units = m_managers->GetPool(pool)->GetUnits();
        uint64_t allowed = need.pin.empty() ? ~uint64_t{0} : 0;
        for (uint32_t unit : need.pin)
        {
            NS_ABORT_MSG_UNLESS(unit < units,
                                "task unit \"" << m_name << "\": it is pinned to unit " << unit << " of pool \""
                                               << need.pool << "\"; allowed is 0 to " << units - 1);
            allowed |= uint64_t{1} << unit;
        }
        for (const auto& other : claim.needs)
        {
            NS_ABORT_MSG_IF(other.pool == pool,
                            "task unit \"" << m_name << "\": it needs pool \"" << need.pool
                                           << "\" twice; say how many units in one need");
        }
        claim.needs.push_back({pool, need.units, allowed});
    }
    m_needsUnits = !claim.needs.empty();
    const uint32_t number = m_managers->AddClaim(claim);
    m_quantum = m_managers->GetQuantum(number);
    m_most = m_activation == INTERRUPT ? m_budget : m_batch;
    NS_ABORT_MSG_IF(m_activation != DEDICATED && m_parallel != 1,
                    "task unit \"" << m_name << "\": Parallel is " << m_parallel
                                   << "; allowed is 1 unless its activation is Dedicated");
    for (uint32_t i = 0; i < m_parallel; i++)
    {
        auto lane = std::make_unique<Lane>();
        lane->unit = this;
        lane->number = m_managers->AddLane(number, lane.get());
        m_lanes.push_back(std::move(lane));
    }
    for (auto lane = m_lanes.rbegin(); lane != m_lanes.rend(); ++lane)
    {
        m_idle.push_back(lane->get());
    }
    for (const std::string& target : m_targets)
    {
        m_next.push_back(router.FindTaskUnit(target, "way of task unit \"" + m_name + "\""));
    }
    if (m_routeKind == RANDOM)
    {
        NS_ABORT_MSG_UNLESS(std::all_of(m_weights.begin(), m_weights.end(), [](double w) { return w >= 0.0; }) &&
                                std::accumulate(m_weights.begin(), m_weights.end(), 0.0) > 0.0,
                            "task unit \"" << m_name << "\": the weights of its way are 0 or more, and one is more");
        if (!m_choice)
        {
            m_choice = CreateObject<UniformRandomVariable>();
        }
    }
    if (m_activation == POLLING)
    {
        // Within the simulation, where traces hear of it.
        m_timer = Simulator::ScheduleNow(&TaskUnit::BeginToPoll, this);
    }
}

void
TaskUnit::BeginToPoll()
{
    Lane* lane = m_idle.back();
    m_idle.pop_back();
    Request(*lane);
}

Time
TaskUnit::Cut(double work) const
{
    return Time(static_cast<int64_t>(m_rounding == DOWN ? work : work + 0.5));
}

void
TaskUnit::Receive(RouterPacket&& packet)
{
    m_arrived++;
    if (m_queue.size() >= m_queueSize)
    {
        m_dropped++;
        m_router->Drop(packet, m_name);
        return;
    }
    m_queue.push_back(std::move(packet));
    Wake();
}

void
TaskUnit::Wake()
{
    switch (m_activation)
    {
    case DEDICATED:
        if (m_requesting < m_queue.size() && !m_idle.empty())
        {
            Lane* lane = m_idle.back();
            m_idle.pop_back();
            Request(*lane);
        }
        break;
    case POLLING:
        if (m_lanes.front()->state == State::HOLDING)
        {
            Poll(*m_lanes.front(), 0.0);
        }
        break;
    case INTERRUPT:
        if (m_interruptsOn)
        {
            m_interruptsOn = false;
            const Time now = Simulator::Now();
            const Time raised = m_wasInterrupted ? std::max(m_lastInterrupt + m_moderation, now) : now;
            m_wasInterrupted = true;
            m_lastInterrupt = raised;
            if (raised == now)
            {
                Interrupt();
            }
            else
            {
                m_timer = Simulator::Schedule(raised - now, &TaskUnit::Interrupt, this);
            }
        }
        break;
    }
}

void
TaskUnit::Interrupt()
{
    m_interrupts++;
    Lane* lane = m_idle.back();
    m_idle.pop_back();
    lane->isInterrupted = true;
    Request(*lane);
}

void
TaskUnit::Request(Lane& lane)
{
    if (!m_needsUnits)
    {
        lane.Granted(Time(0));
        return;
    }
    lane.state = State::REQUESTING;
    m_requesting++;
    m_managers->Request(lane.number);
}

void
TaskUnit::Lane::Granted(Time overhead)
{
    if (state == State::REQUESTING)
    {
        unit->m_requesting--;
    }
    state = State::HOLDING;
    quantumEnd = unit->m_quantum.IsZero() ? Time::Max() : Simulator::Now() + unit->m_quantum;
    double work = static_cast<double>(overhead.GetTimeStep());
    if (left >= 0.0)
    {
        work += left;
        left = -1.0;
        unit->Work(*this, work);
        return;
    }
    if (isInterrupted)
    {
        isInterrupted = false;
        if (unit->m_interruptCost > 0.0)
        {
            // The interrupt costs, then the poll finds its packets; those that come meanwhile are among them.
            polled = 0;
            unit->Work(*this, work + unit->m_interruptCost * unit->m_ticksPerSecond);
            return;
        }
    }
    unit->Poll(*this, work);
}

void
TaskUnit::Lane::Revoked()
{
    event.Cancel();
    if (state == State::WORKING)
    {
        unit->m_managers->EndWork(number);
        left = static_cast<double>((workEnd - Simulator::Now()).GetTimeStep()) / factor;
    }
    state = State::REQUESTING;
    unit->m_requesting++;
}

void
TaskUnit::Lane::Contested()
{
    if (state != State::HOLDING || unit->m_quantum.IsZero() || !event.IsExpired() || unit->m_activation != POLLING)
    {
        return;
    }
    // Holding uses up quanta like work does, but costs no events while nobody else wants the units.
    const Time now = Simulator::Now();
    while (quantumEnd <= now)
    {
        quantumEnd += unit->m_quantum;
    }
    event = Simulator::Schedule(quantumEnd - now, &TaskUnit::Fire, unit, this);
}

Ptr<const Packet>
TaskUnit::Lane::GetPacket(ResourceMessage message) const
{
    const bool isGiven = message == ResourceMessage::REL || message == ResourceMessage::REV;
    if (hasPacket || isGiven)
    {
        return packet.packet;
    }
    return unit->m_queue.empty() ? nullptr : unit->m_queue.front().packet;
}

void
TaskUnit::Poll(Lane& lane, double extra)
{
    if (m_queue.empty())
    {
        lane.polled = 0;
        EndOfPoll(lane);
        return;
    }
    RouterPacket first = std::move(m_queue.front());
    m_queue.pop_front();
    const std::size_t more = std::min<std::size_t>(m_queue.size(), m_most - 1);
    for (std::size_t i = 0; i < more; i++)
    {
        lane.batch.push_back(std::move(m_queue.front()));
        m_queue.pop_front();
    }
    lane.polled = static_cast<uint32_t>(more) + 1;
    Serve(lane, std::move(first), extra + m_perBatch * m_ticksPerSecond);
}

void
TaskUnit::Serve(Lane& lane, RouterPacket&& packet, double extra)
{
    double seconds = GetServiceSeconds(packet.frameBytes);
    if (m_variation)
    {
        seconds *= m_variation->GetValue();
    }
    lane.event.Cancel();
    lane.packet = std::move(packet);
    lane.hasPacket = true;
    Work(lane, extra + seconds * m_ticksPerSecond);
}

void
TaskUnit::Work(Lane& lane, double work)
{
    lane.factor = m_needsUnits ? m_managers->BeginWork(lane.number) : 1.0;
    lane.state = State::WORKING;
    const Time takes = Cut(work * lane.factor);
    lane.workEnd = Simulator::Now() + takes;
    if (takes.IsZero() && !m_needsUnits && lane.quantumEnd == Time::Max())
    {
        // Costs nothing and asks nobody, such as a distributor: no event.
        Fire(&lane);
        return;
    }
    Schedule(lane);
}

void
TaskUnit::Schedule(Lane& lane)
{
    const Time at = std::min(lane.workEnd, lane.quantumEnd);
    lane.event = Simulator::Schedule(at - Simulator::Now(), &TaskUnit::Fire, this, &lane);
}

void
TaskUnit::Fire(Lane* which)
{
    Lane& lane = *which;
    if (lane.state == State::HOLDING)
    {
        m_managers->Expire(lane.number);
        return;
    }
    if (lane.workEnd > Simulator::Now())
    {
        if (!m_managers->Expire(lane.number))
        {
            lane.quantumEnd = Simulator::Now() + m_quantum;
            Schedule(lane);
        }
        return;
    }
    if (m_needsUnits)
    {
        m_managers->EndWork(lane.number);
    }
    const bool hadPacket = lane.hasPacket;
    RouterPacket served;
    if (hadPacket)
    {
        served = std::move(lane.packet);
        lane.packet.packet = served.packet;
        lane.hasPacket = false;
        m_served++;
    }
    if (!hadPacket)
    {
        // The end of an interrupt: the poll begins.
        Poll(lane, 0.0);
    }
    else if (!lane.batch.empty())
    {
        RouterPacket next = std::move(lane.batch.front());
        lane.batch.pop_front();
        Serve(lane, std::move(next), 0.0);
    }
    else
    {
        EndOfPoll(lane);
    }
    if (hadPacket)
    {
        MoveOn(std::move(served));
    }
}

void
TaskUnit::EndOfPoll(Lane& lane)
{
    const bool more = m_queue.size() > m_requesting;
    switch (m_activation)
    {
    case POLLING:
        if (m_needsUnits && m_managers->IsContested(lane.number) && Simulator::Now() >= lane.quantumEnd)
        {
            lane.state = State::REQUESTING;
            m_requesting++;
            m_managers->Release(lane.number, true, ResourceMessage::REV);
        }
        else if (more)
        {
            Poll(lane, 0.0);
        }
        else
        {
            lane.state = State::HOLDING;
        }
        break;
    case DEDICATED:
        GiveBack(lane, more);
        break;
    case INTERRUPT:
        if (lane.polled >= m_budget)
        {
            GiveBack(lane, true);
        }
        else
        {
            m_interruptsOn = true;
            GiveBack(lane, false);
            if (!m_queue.empty())
            {
                Wake();
            }
        }
        break;
    }
}

void
TaskUnit::GiveBack(Lane& lane, bool again)
{
    if (!m_needsUnits)
    {
        if (again)
        {
            Poll(lane, 0.0);
        }
        else
        {
            lane.state = State::IDLE;
            m_idle.push_back(&lane);
        }
        return;
    }
    if (again)
    {
        lane.state = State::REQUESTING;
        m_requesting++;
    }
    else
    {
        lane.state = State::IDLE;
        m_idle.push_back(&lane);
    }
    m_managers->Release(lane.number, again);
}

void
TaskUnit::MoveOn(RouterPacket&& packet)
{
    if (m_next.empty())
    {
        m_router->Deliver(std::move(packet));
        return;
    }
    std::size_t target = 0;
    switch (m_routeKind)
    {
    case SINGLE:
        break;
    case RSS:
        target = m_router->GetRssQueue(packet, static_cast<uint32_t>(m_next.size()));
        break;
    case ROUND_ROBIN:
        target = m_turn;
        m_turn = (m_turn + 1) % m_next.size();
        break;
    case RANDOM: {
        double point = m_choice->GetValue(0.0, std::accumulate(m_weights.begin(), m_weights.end(), 0.0));
        while (target + 1 < m_weights.size() && point >= m_weights[target])
        {
            point -= m_weights[target++];
        }
        break;
    }
    }
    m_next[target]->Receive(std::move(packet));
}

} // namespace ns3
