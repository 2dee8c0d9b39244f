/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "resource-helper.h"

#include "resource-file.h"

#include "ns3/double.h"
#include "ns3/enum.h"
#include "ns3/integer.h"
#include "ns3/log.h"
#include "ns3/loopback-net-device.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <limits>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("ResourceHelper");

namespace
{

/**
 * \param things things with names
 * \param name the name of one
 * \param what what they are, for the error
 * \return that one
 */
template <typename T>
T&
Find(std::vector<T>& things, const std::string& name, const std::string& what)
{
    std::string known;
    for (T& thing : things)
    {
        if (thing.name == name)
        {
            return thing;
        }
        known += (known.empty() ? "\"" : ", \"") + thing.name + "\"";
    }
    NS_FATAL_ERROR("there is no " << what << " \"" << name << "\"; there are " << (known.empty() ? "none" : known));
}

} // namespace

ResourceHelper::ResourceHelper()
{
    m_factory.SetTypeId("ns3::RouterResources");
}

void
ResourceHelper::SetAttribute(const std::string& name, const AttributeValue& value)
{
    m_factory.Set(name, value);
}

void
ResourceHelper::AddPool(const std::string& name, uint32_t units, const std::vector<double>& contention)
{
    NS_ABORT_MSG_UNLESS(units >= 1 && units <= ResourcePool::MOST_UNITS,
                        "pool \"" << name << "\": got " << units << " units; allowed is 1 to "
                                  << ResourcePool::MOST_UNITS);
    Pool pool{name, ObjectFactory("ns3::ResourcePool"), contention};
    pool.factory.Set("Name", StringValue(name));
    pool.factory.Set("Units", UintegerValue(units));
    m_pools.push_back(pool);
}

void
ResourceHelper::SetPoolAttribute(const std::string& pool, const std::string& name, const AttributeValue& value)
{
    FindPool(pool).factory.Set(name, value);
}

void
ResourceHelper::AddTaskUnit(const std::string& name)
{
    Unit unit;
    unit.name = name;
    unit.factory.SetTypeId("ns3::TaskUnit");
    unit.factory.Set("Name", StringValue(name));
    m_units.push_back(unit);
}

void
ResourceHelper::SetTaskUnitAttribute(const std::string& unit, const std::string& name, const AttributeValue& value)
{
    FindUnit(unit).factory.Set(name, value);
}

void
ResourceHelper::AddNeed(const std::string& unit,
                        const std::string& pool,
                        uint32_t units,
                        const std::vector<uint32_t>& pin)
{
    FindPool(pool);
    FindUnit(unit).needs.push_back({pool, units, pin});
}

void
ResourceHelper::SetServiceTable(const std::string& unit, const std::vector<std::pair<uint32_t, double>>& table)
{
    FindUnit(unit).table = table;
}

void
ResourceHelper::SetRoute(const std::string& unit,
                         TaskUnit::RouteKind kind,
                         const std::vector<std::string>& targets,
                         const std::vector<double>& weights)
{
    Unit& own = FindUnit(unit);
    own.kind = kind;
    own.targets = targets;
    own.weights = weights;
}

void
ResourceHelper::SetEntry(const std::string& unit, int32_t interface)
{
    FindUnit(unit);
    m_entries.emplace_back(interface, unit);
}

void
ResourceHelper::AddReceiveSideScaling(const std::string& pool, uint32_t cores, double perPacket, double perByte)
{
    AddTaskUnit("distributor");
    std::vector<std::string> names;
    for (uint32_t core = 0; core < cores; core++)
    {
        names.push_back("core " + std::to_string(core));
        AddTaskUnit(names.back());
        SetTaskUnitAttribute(names.back(), "PerPacket", DoubleValue(perPacket));
        SetTaskUnitAttribute(names.back(), "PerByte", DoubleValue(perByte));
        AddNeed(names.back(), pool);
    }
    SetRoute("distributor", TaskUnit::RSS, names);
}

ResourceHelper
ResourceHelper::FromFile(const std::string& path)
{
    constexpr int64_t VERSION = 1;
    constexpr int64_t MANY = 1 << 20;
    const ResourceFile file = ResourceFile::Read(path);
    if (file.At("format").Text() != "routecast router for ns-3")
    {
        file.At("format").Fail("got \"" + file.At("format").Text() +
                               "\"; expected what \"routecast export --format ns3\" writes");
    }
    file.At("version").Whole(VERSION, VERSION);
    file.CheckKeys({"format", "version", "name", "pools", "tasks", "ports"});

    ResourceHelper helper;
    helper.m_file = path;
    for (const ResourceFile& pool : file.At("pools").Values())
    {
        pool.CheckKeys({"name",
                        "units",
                        "policy",
                        "quantum_s",
                        "switch_cost_s",
                        "migration_cost_s",
                        "contention",
                        "active_w",
                        "idle_w",
                        "base_w"});
        const std::string name = pool.At("name").Text();
        std::vector<double> contention;
        for (const ResourceFile& factor : pool.At("contention").Values())
        {
            contention.push_back(factor.Number(std::numeric_limits<double>::min()));
        }
        helper.AddPool(name,
                       static_cast<uint32_t>(pool.At("units").Whole(1, ResourcePool::MOST_UNITS)),
                       contention);
        const auto policy = pool.At("policy").Choice<ResourcePool::Policy>({{"fifo", ResourcePool::FIFO},
                                                                            {"priority", ResourcePool::PRIORITY},
                                                                            {"preemptive", ResourcePool::PREEMPTIVE},
                                                                            {"round_robin", ResourcePool::ROUND_ROBIN},
                                                                            {"fair", ResourcePool::FAIR}});
        helper.SetPoolAttribute(name, "Policy", EnumValue(policy));
        helper.SetPoolAttribute(name, "Quantum", TimeValue(Seconds(pool.At("quantum_s").Number())));
        helper.SetPoolAttribute(name, "SwitchCost", TimeValue(Seconds(pool.At("switch_cost_s").Number())));
        helper.SetPoolAttribute(name, "MigrationCost", TimeValue(Seconds(pool.At("migration_cost_s").Number())));
        helper.SetPoolAttribute(name, "ActivePower", DoubleValue(pool.At("active_w").Number()));
        helper.SetPoolAttribute(name, "IdlePower", DoubleValue(pool.At("idle_w").Number()));
        helper.SetPoolAttribute(name, "BasePower", DoubleValue(pool.At("base_w").Number()));
    }
    for (const ResourceFile& task : file.At("tasks").Values())
    {
        helper.AddTaskUnit(task.At("name").Text());
    }
    for (const ResourceFile& task : file.At("tasks").Values())
    {
        task.CheckKeys({"name",       "needs",    "per_packet_s", "per_byte_s",       "per_batch_s",
                        "variation",  "queue",    "parallel",     "batch",            "priority",
                        "weight",     "budget",   "activation",   "interrupt_cost_s", "moderation_s",
                        "route"});
        const std::string name = task.At("name").Text();
        for (const ResourceFile& need : task.At("needs").Values())
        {
            need.CheckKeys({"pool", "units", "pin"});
            std::vector<uint32_t> pin;
            for (const ResourceFile& unit : need.At("pin").Values())
            {
                pin.push_back(static_cast<uint32_t>(unit.Whole(0, ResourcePool::MOST_UNITS - 1)));
            }
            helper.AddNeed(name,
                           need.At("pool").Text(),
                           static_cast<uint32_t>(need.At("units").Whole(1, ResourcePool::MOST_UNITS)),
                           pin);
        }
        for (const auto& [key, attribute] : {std::pair{"per_packet_s", "PerPacket"},
                                             std::pair{"per_byte_s", "PerByte"},
                                             std::pair{"per_batch_s", "PerBatch"},
                                             std::pair{"interrupt_cost_s", "InterruptCost"},
                                             std::pair{"weight", "Weight"}})
        {
            helper.SetTaskUnitAttribute(name, attribute, DoubleValue(task.At(key).Number()));
        }
        for (const auto& [key, attribute] : {std::pair{"queue", "QueueSize"},
                                             std::pair{"parallel", "Parallel"},
                                             std::pair{"batch", "Batch"},
                                             std::pair{"budget", "Budget"}})
        {
            helper.SetTaskUnitAttribute(name,
                                        attribute,
                                        UintegerValue(static_cast<uint64_t>(task.At(key).Whole(1, MANY))));
        }
        helper.SetTaskUnitAttribute(name, "Priority", IntegerValue(task.At("priority").Whole(-MANY, MANY)));
        helper.SetTaskUnitAttribute(name, "Moderation", TimeValue(Seconds(task.At("moderation_s").Number())));
        const auto activation = task.At("activation").Choice<TaskUnit::Activation>({{"dedicated", TaskUnit::DEDICATED},
                                                                                    {"polling", TaskUnit::POLLING},
                                                                                    {"interrupt", TaskUnit::INTERRUPT}});
        helper.SetTaskUnitAttribute(name, "Activation", EnumValue(activation));
        if (!task.At("variation").Text().empty())
        {
            helper.SetTaskUnitAttribute(name, "Variation", StringValue(task.At("variation").Text()));
        }
        const ResourceFile& route = task.At("route");
        route.CheckKeys({"kind", "to", "weights", "indirection"});
        if (route.At("kind").Text() == "out")
        {
            continue;
        }
        std::vector<std::string> targets;
        for (const ResourceFile& target : route.At("to").Values())
        {
            targets.push_back(target.Text());
        }
        std::vector<double> weights;
        for (const ResourceFile& weight : route.At("weights").Values())
        {
            weights.push_back(weight.Number());
        }
        const auto kind = route.At("kind").Choice<TaskUnit::RouteKind>({{"single", TaskUnit::SINGLE},
                                                                        {"rss", TaskUnit::RSS},
                                                                        {"round_robin", TaskUnit::ROUND_ROBIN},
                                                                        {"random", TaskUnit::RANDOM}});
        helper.SetRoute(name, kind, targets, weights);
        std::vector<uint32_t> indirection;
        for (const ResourceFile& queue : route.At("indirection").Values())
        {
            indirection.push_back(static_cast<uint32_t>(queue.Whole(0, MANY)));
        }
        if (!indirection.empty() && !helper.m_indirection.empty() && indirection != helper.m_indirection)
        {
            route.At("indirection").Fail("another table than that of another task unit; a node has one");
        }
        helper.m_indirection = indirection.empty() ? helper.m_indirection : indirection;
    }
    int32_t interface = 0;
    for (const ResourceFile& port : file.At("ports").Values())
    {
        port.CheckKeys({"name", "link_bps", "tx_ring", "entry"});
        helper.SetEntry(port.At("entry").Text(), interface++);
    }
    return helper;
}

uint32_t
ResourceHelper::GetNEntries() const
{
    return m_entries.size();
}

Ptr<RouterResources>
ResourceHelper::InstallFromFile(const std::string& path, Ptr<Node> node)
{
    return FromFile(path).Install(node);
}

Ptr<RouterResources>
ResourceHelper::Install(Ptr<Node> node) const
{
    auto resources = m_factory.Create<RouterResources>();
    for (const Pool& pool : m_pools)
    {
        auto made = pool.factory.Create<ResourcePool>();
        made->SetContention(pool.contention);
        resources->AddPool(made);
    }
    for (const Unit& unit : m_units)
    {
        auto made = unit.factory.Create<TaskUnit>();
        for (const Need& need : unit.needs)
        {
            made->AddNeed(need.pool, need.units, need.pin);
        }
        if (!unit.table.empty())
        {
            made->SetServiceTable(unit.table);
        }
        if (!unit.targets.empty())
        {
            made->SetRoute(unit.kind, unit.targets, unit.weights);
        }
        resources->AddTaskUnit(made);
    }
    if (!m_units.empty())
    {
        resources->SetEntry(m_units.front().name);
    }
    std::vector<Ptr<NetDevice>> devices;
    for (uint32_t i = 0; i < node->GetNDevices(); i++)
    {
        if (!DynamicCast<LoopbackNetDevice>(node->GetDevice(i)))
        {
            devices.push_back(node->GetDevice(i));
        }
    }
    NS_ABORT_MSG_IF(!m_file.empty() && devices.size() != m_entries.size(),
                    "node " << node->GetId() << ": it has " << devices.size() << " devices, and the router of " << m_file
                            << " " << m_entries.size() << " ports; allowed is a device for each port");
    if (!m_indirection.empty())
    {
        resources->SetRss({}, m_indirection);
    }
    for (const auto& [interface, unit] : m_entries)
    {
        NS_ABORT_MSG_IF(interface >= static_cast<int32_t>(devices.size()),
                        "node " << node->GetId() << ": entry \"" << unit << "\" is of interface " << interface
                                << "; there are " << devices.size() << ", from 0");
        resources->SetEntry(unit, interface < 0 ? nullptr : devices[interface]);
    }
    resources->Install(node);
    return resources;
}

std::vector<Ptr<RouterResources>>
ResourceHelper::Install(NodeContainer nodes) const
{
    std::vector<Ptr<RouterResources>> installed;
    for (auto node = nodes.Begin(); node != nodes.End(); ++node)
    {
        installed.push_back(Install(*node));
    }
    return installed;
}

ResourceHelper::Pool&
ResourceHelper::FindPool(const std::string& name)
{
    return Find(m_pools, name, "pool");
}

ResourceHelper::Unit&
ResourceHelper::FindUnit(const std::string& name)
{
    return Find(m_units, name, "task unit");
}

} // namespace ns3
