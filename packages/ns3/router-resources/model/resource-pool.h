/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */

#ifndef RESOURCE_POOL_H
#define RESOURCE_POOL_H

#include "ns3/callback.h"
#include "ns3/nstime.h"
#include "ns3/object.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ns3
{

class ResourceManager;

/**
 * \ingroup router-resources
 *
 * Like resource units of a node: cores, buses, memory channels. With its policy it is the local resource manager of
 * Meyer et al. 2014, sec. IV-C; ResourceManager, which holds all pools of a node, is the global one.
 *
 * A pool belongs to one node. Its attributes are read when the first packet comes; later changes have no effect on
 * units that are held.
 */
class ResourcePool : public Object
{
  public:
    /// Who gets the next unit.
    enum Policy
    {
        FIFO,        //!< The oldest request.
        PRIORITY,    //!< The highest priority; nothing is revoked.
        PREEMPTIVE,  //!< The highest priority; a higher request revokes a unit from the lowest (preempt-resume).
        ROUND_ROBIN, //!< In turn, each for at most a quantum.
        FAIR         //!< The least service received per weight, each for at most a quantum.
    };

    /// The most units of a pool.
    static constexpr uint32_t MOST_UNITS = 64;

    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId GetTypeId();
    ResourcePool();
    ~ResourcePool() override;

    /**
     * \return the name, which is unique among the pools of a node
     */
    std::string GetName() const;

    /**
     * \return the number of units
     */
    uint32_t GetUnits() const;

    /**
     * Set how much longer a unit works for a packet while 1, 2, ... units of the pool work, itself among them.
     *
     * This serves every law of contention: bus, cache, lock. The factor that holds when service of a packet begins
     * holds for all of it.
     *
     * \param factors the factors, the first for one unit; past its end the last one goes on
     */
    void SetContention(const std::vector<double>& factors);

    /**
     * \return energy that the units have drawn since the pool was made [J]: base, active and idle power over time
     */
    double GetEnergy() const;

    /**
     * \return power that the units draw now [W]
     */
    double GetPower() const;

    /**
     * \return time of units granted, summed over units
     */
    Time GetHeldTime() const;

  private:
    friend class ResourceManager;
    friend class ResourceEnergyModel;

    /**
     * Books the time of units granted up to now.
     */
    void Book() const;

    /**
     * Books the time of units granted, and the energy, before a unit is granted or given back.
     */
    void BeforeChange() const;

    std::string m_name;               //!< Name.
    uint32_t m_units;                 //!< How many units.
    Policy m_policy;                  //!< Who gets the next unit.
    Time m_quantum;                   //!< Longest grant while others wait; 0: none.
    Time m_switchCost;                //!< Lost when a unit turns to another task unit.
    Time m_migrationCost;             //!< Lost when a task unit goes on at another unit.
    double m_activePower;             //!< Of a unit that is granted [W].
    double m_idlePower;               //!< Of a unit that is not [W].
    double m_basePower;               //!< Of the pool [W].
    std::vector<double> m_contention; //!< Factors for 1, 2, ... working units.

    uint64_t m_free{0};                  //!< Units that are free, as a bit set.
    uint32_t m_working{0};               //!< Units that work.
    double m_virtualTime{0.0};           //!< Policy FAIR: no task unit that wakes starts behind it.
    std::vector<uint32_t> m_lastTask;    //!< Task unit that each unit worked for last.
    std::vector<uint32_t> m_holder;      //!< Lane that holds each unit.
    std::vector<uint32_t> m_waiting;     //!< Lanes that wait for units, in order of request.
    int64_t m_held{0};                   //!< Units that are granted.
    int64_t m_madeAt;                    //!< When the pool was made [ticks].
    mutable int64_t m_bookedAt;          //!< Until when time is booked [ticks].
    Callback<void> m_beforeChange;       //!< Called before units are granted or given back; null: nobody asks.
    mutable int64_t m_heldTicks{0};      //!< Time of units granted, summed over units [ticks].
};

} // namespace ns3

#endif // RESOURCE_POOL_H
