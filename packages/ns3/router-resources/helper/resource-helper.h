/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef RESOURCE_HELPER_H
#define RESOURCE_HELPER_H

#include "ns3/net-device-container.h"
#include "ns3/node-container.h"
#include "ns3/object-factory.h"
#include "ns3/router-resources.h"

#include <string>
#include <vector>

namespace ns3
{

/**
 * \ingroup router-resources
 *
 * Puts resources into nodes: pools of like units, task units that need them, entries of devices. What is added to the
 * helper is made anew for every node that it installs.
 *
 * \code
 *   ResourceHelper router;
 *   router.AddPool("cpu", 4);
 *   router.AddReceiveSideScaling("cpu", 4, 562.8e-9, 8.4e-12);
 *   router.Install(nodes.Get(1));
 * \endcode
 */
class ResourceHelper
{
  public:
    ResourceHelper();

    /**
     * Set an attribute of each RouterResources.
     * \param name its name
     * \param value its value
     */
    void SetAttribute(const std::string& name, const AttributeValue& value);

    /**
     * Add a pool of like units.
     * \param name its name
     * \param units how many units
     * \param contention factors on service times for 1, 2, ... working units; empty: 1
     */
    void AddPool(const std::string& name, uint32_t units, const std::vector<double>& contention = {});

    /**
     * Set an attribute of a pool.
     * \param pool name of the pool
     * \param name of the attribute
     * \param value its value
     */
    void SetPoolAttribute(const std::string& pool, const std::string& name, const AttributeValue& value);

    /**
     * Add a task unit; the first one is the entry of all devices unless SetEntry says otherwise.
     * \param name its name
     */
    void AddTaskUnit(const std::string& name);

    /**
     * Set an attribute of a task unit.
     * \param unit name of the task unit
     * \param name of the attribute
     * \param value its value
     */
    void SetTaskUnitAttribute(const std::string& unit, const std::string& name, const AttributeValue& value);

    /**
     * Say that a task unit needs units of a pool.
     * \param unit name of the task unit
     * \param pool name of the pool
     * \param units how many at once
     * \param pin which it may use; empty: all
     */
    void AddNeed(const std::string& unit,
                 const std::string& pool,
                 uint32_t units = 1,
                 const std::vector<uint32_t>& pin = {});

    /**
     * Set the service times of a task unit by a table.
     * \param unit name of the task unit
     * \param table frame sizes [B] and seconds
     */
    void SetServiceTable(const std::string& unit, const std::vector<std::pair<uint32_t, double>>& table);

    /**
     * Say where packets go after a task unit.
     * \param unit name of the task unit
     * \param kind how a target is chosen
     * \param targets names of task units
     * \param weights for TaskUnit::RANDOM
     */
    void SetRoute(const std::string& unit,
                  TaskUnit::RouteKind kind,
                  const std::vector<std::string>& targets,
                  const std::vector<double>& weights = {});

    /**
     * Say which task unit gets the packets of a device.
     * \param unit name of the task unit
     * \param interface number of the device among the node's, loopback not counted; below 0: all others
     */
    void SetEntry(const std::string& unit, int32_t interface = -1);

    /**
     * Add what network cards and drivers do with many cores: a distributor that costs nothing, named "distributor", and
     * a task unit for each core, named "core 0", "core 1", ..., to which it leads packets by their Toeplitz hash.
     *
     * \param pool name of the pool of cores
     * \param cores how many
     * \param perPacket seconds for a packet
     * \param perByte seconds for a byte of its frame
     */
    void AddReceiveSideScaling(const std::string& pool, uint32_t cores, double perPacket, double perByte = 0.0);

    /**
     * Read a router that routecast exported ("routecast export FILE.router.toml --format ns3").
     *
     * Entries of its ports are those of the node's devices, in their order, loopback not counted. Rates and rings of its
     * links are the simulation's to set: a node has the devices that it has.
     *
     * \param path path of the file
     * \return a helper that installs it
     */
    static ResourceHelper FromFile(const std::string& path);

    /**
     * \return how many entries were said, which of a file are as many as its ports
     */
    uint32_t GetNEntries() const;

    /**
     * Put the router of a file into a node, which has as many devices as the router has ports.
     * \param path path of the file
     * \param node a node with devices, an IP stack and addresses
     * \return what was put there
     */
    static Ptr<RouterResources> InstallFromFile(const std::string& path, Ptr<Node> node);

    /**
     * Put resources into a node.
     * \param node a node with devices, an IP stack and addresses
     * \return what was put there
     */
    Ptr<RouterResources> Install(Ptr<Node> node) const;

    /**
     * Put resources of its own into each of several nodes.
     * \param nodes the nodes
     * \return what was put there
     */
    std::vector<Ptr<RouterResources>> Install(NodeContainer nodes) const;

  private:
    /// A pool to make.
    struct Pool
    {
        std::string name;               //!< Name.
        ObjectFactory factory;          //!< Attributes.
        std::vector<double> contention; //!< Factors.
    };

    /// A need of a task unit.
    struct Need
    {
        std::string pool;          //!< Name of the pool.
        uint32_t units;            //!< How many.
        std::vector<uint32_t> pin; //!< Which.
    };

    /// A task unit to make.
    struct Unit
    {
        std::string name;                               //!< Name.
        ObjectFactory factory;                          //!< Attributes.
        std::vector<Need> needs;                        //!< Needs.
        std::vector<std::pair<uint32_t, double>> table; //!< Service times.
        TaskUnit::RouteKind kind{TaskUnit::SINGLE};     //!< How targets are chosen.
        std::vector<std::string> targets;               //!< Names of targets.
        std::vector<double> weights;                    //!< Weights of targets.
    };

    /**
     * \param name name of a pool
     * \return the pool
     */
    Pool& FindPool(const std::string& name);

    /**
     * \param name name of a task unit
     * \return the task unit
     */
    Unit& FindUnit(const std::string& name);

    std::string m_file;                                      //!< Path of the file it was read from; empty: none.
    std::vector<uint32_t> m_indirection;                     //!< Table of receive-side scaling; empty: even.
    ObjectFactory m_factory;                                 //!< Attributes of each RouterResources.
    std::vector<Pool> m_pools;                               //!< Pools.
    std::vector<Unit> m_units;                               //!< Task units.
    std::vector<std::pair<int32_t, std::string>> m_entries;  //!< Entries, by interface.
};

} // namespace ns3

#endif // RESOURCE_HELPER_H
