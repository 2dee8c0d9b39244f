/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "resource-helper.h"

#include "ns3/double.h"
#include "ns3/log.h"
#include "ns3/loopback-net-device.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

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
