/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */

#include "resource-energy-model.h"

#include "resource-manager.h"
#include "resource-pool.h"
#include "router-resources.h"

#include "ns3/log.h"
#include "ns3/node.h"
#include "ns3/simulator.h"

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("ResourceEnergyModel");
NS_OBJECT_ENSURE_REGISTERED(ResourceEnergyModel);

TypeId
ResourceEnergyModel::GetTypeId()
{
    static TypeId tid = TypeId("ns3::ResourceEnergyModel")
                            .SetParent<DeviceEnergyModel>()
                            .SetGroupName("RouterResources")
                            .AddConstructor<ResourceEnergyModel>();
    return tid;
}

ResourceEnergyModel::ResourceEnergyModel()
{
    NS_LOG_FUNCTION(this);
}

ResourceEnergyModel::~ResourceEnergyModel()
{
    NS_LOG_FUNCTION(this);
}

Ptr<ResourceEnergyModel>
ResourceEnergyModel::Install(Ptr<RouterResources> router, Ptr<EnergySource> source)
{
    NS_ABORT_MSG_UNLESS(router && router->GetNode(),
                        "ResourceEnergyModel::Install: the router is on no node: install it first");
    NS_ABORT_MSG_UNLESS(source, "ResourceEnergyModel::Install: no energy source");
    NS_ABORT_MSG_UNLESS(source->GetNode() == router->GetNode(),
                        "ResourceEnergyModel::Install: the source is "
                            << (source->GetNode() ? "of node " + std::to_string(source->GetNode()->GetId()) : "of no node")
                            << ", the router of node " << router->GetNode()->GetId() << ": allowed is the same node");
    auto model = CreateObject<ResourceEnergyModel>();
    model->m_router = router;
    for (uint32_t i = 0; i < router->GetManager()->GetNPools(); i++)
    {
        const auto pool = router->GetManager()->GetPool(i);
        NS_ABORT_MSG_UNLESS(pool->m_beforeChange.IsNull(),
                            "ResourceEnergyModel::Install: pool \"" << pool->GetName()
                                                                    << "\" draws from a source already: allowed is one");
        model->m_pools.push_back(pool);
    }
    model->m_drawnBefore = model->GetEnergyOfPools();
    model->SetEnergySource(source);
    source->AppendDeviceEnergyModel(model);
    for (const auto& pool : model->m_pools)
    {
        pool->m_beforeChange = MakeCallback(&ResourceEnergyModel::BeforeChange, PeekPointer(model));
    }
    return model;
}

void
ResourceEnergyModel::SetEnergySource(Ptr<EnergySource> source)
{
    m_source = source;
}

double
ResourceEnergyModel::GetTotalEnergyConsumption() const
{
    return m_isEmpty ? m_drawn : m_drawn + GetEnergyOfPools() - m_drawnBefore;
}

double
ResourceEnergyModel::GetEnergyOfPools() const
{
    double energy = 0.0;
    for (const auto& pool : m_pools)
    {
        energy += pool->GetEnergy();
    }
    return energy;
}

void
ResourceEnergyModel::ChangeState(int newState)
{
    NS_FATAL_ERROR("ResourceEnergyModel::ChangeState(" << newState << "): pools change their states themselves");
}

void
ResourceEnergyModel::HandleEnergyDepletion()
{
    m_drawn = GetTotalEnergyConsumption();
    m_isEmpty = true;
    m_router->SetPowered(false);
}

void
ResourceEnergyModel::HandleEnergyRecharged()
{
    m_drawnBefore = GetEnergyOfPools();
    m_isEmpty = false;
    m_router->SetPowered(true);
}

void
ResourceEnergyModel::HandleEnergyChanged()
{
}

void
ResourceEnergyModel::DoDispose()
{
    for (const auto& pool : m_pools)
    {
        pool->m_beforeChange = Callback<void>();
    }
    m_update.Cancel();
    m_pools.clear();
    m_router = nullptr;
    m_source = nullptr;
    DeviceEnergyModel::DoDispose();
}

double
ResourceEnergyModel::DoGetCurrentA() const
{
    // A source that asks while changes of this instant are due asks for the time before them.
    return m_source ? (m_isUpdateDue ? m_powerBefore : GetPower()) / m_source->GetSupplyVoltage() : 0.0;
}

double
ResourceEnergyModel::GetPower() const
{
    double power = 0.0;
    if (m_isEmpty)
    {
        return power;
    }
    for (const auto& pool : m_pools)
    {
        power += pool->GetPower();
    }
    return power;
}

void
ResourceEnergyModel::BeforeChange()
{
    if (!m_isUpdateDue)
    {
        m_isUpdateDue = true;
        m_powerBefore = GetPower();
        m_update = Simulator::ScheduleNow(&ResourceEnergyModel::Update, this);
    }
}

void
ResourceEnergyModel::Update()
{
    m_source->UpdateEnergySource();
    m_isUpdateDue = false;
}

} // namespace ns3
