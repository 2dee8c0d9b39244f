/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */

#ifndef RESOURCE_ENERGY_MODEL_H
#define RESOURCE_ENERGY_MODEL_H

#include "router-resources-compat.h"

#include "ns3/device-energy-model.h"
#include "ns3/energy-source.h"
#include "ns3/event-id.h"

#include <vector>

namespace ns3
{

class ResourcePool;
class RouterResources;

/**
 * \ingroup router-resources
 *
 * Draws what the pools of a router need from an energy source of its node, beside whatever else draws from it, such as
 * radios. The power of a pool is its base power, and that of its units by state; the current is power over the source's
 * voltage.
 *
 * The source is brought up to date at each instant at which units are granted or given back, in an event of its own: what is
 * drawn is exact, and a source that runs empty does not switch a radio off in the midst of its reception. Without this model
 * no event is added, and ResourcePool::GetEnergy says the same energy.
 *
 * When the source is empty the router takes no packets: they are dropped, at "power". Units finish what they hold, and
 * draw nothing. When the source has energy again, the router takes packets again.
 */
class ResourceEnergyModel : public DeviceEnergyModel
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();
    ResourceEnergyModel();
    ~ResourceEnergyModel() override;

    /**
     * Make a model of a router, and append it to a source of the router's node.
     *
     * \param router the router, installed
     * \param source the source
     * \return the model
     */
    static Ptr<ResourceEnergyModel> Install(Ptr<RouterResources> router, Ptr<EnergySource> source);

    void SetEnergySource(Ptr<EnergySource> source) override;

    /**
     * \return what the pools have drawn since the model was installed [J]
     */
    double GetTotalEnergyConsumption() const override;

    /**
     * Pools change their states themselves: a call ends the simulation with a message.
     * \param newState not used
     */
    void ChangeState(int newState) override;
    void HandleEnergyDepletion() override;
    void HandleEnergyRecharged() override;
    void HandleEnergyChanged() override;

  protected:
    void DoDispose() override;

  private:
    double DoGetCurrentA() const override;

    /**
     * \return what the pools have needed since they were made [J]
     */
    double GetEnergyOfPools() const;

    /**
     * \return power of the pools now [W]
     */
    double GetPower() const;

    /**
     * A pool is about to grant a unit or to get one back.
     */
    void BeforeChange();

    /**
     * Brings the source up to date after the changes of an instant.
     */
    void Update();

    Ptr<RouterResources> m_router;         //!< Whose pools.
    std::vector<Ptr<ResourcePool>> m_pools; //!< They.
    Ptr<EnergySource> m_source;            //!< What they draw from.
    EventId m_update;                      //!< Update of the source that is due at this instant.
    bool m_isUpdateDue{false};             //!< Whether it has yet to come.
    double m_powerBefore{0.0};             //!< Power before the changes of this instant [W].
    bool m_isEmpty{false};                 //!< Whether the source has no energy.
    double m_drawn{0.0};                   //!< What was drawn until the source was empty last [J].
    double m_drawnBefore{0.0};             //!< What pools had needed when they began to draw from it [J].
};

} // namespace ns3

#endif // RESOURCE_ENERGY_MODEL_H
