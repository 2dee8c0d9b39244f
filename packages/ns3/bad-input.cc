/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */
/**
 * \file
 * Does wrong things to the module, one a run: each has to end with a message that says where, what was got and what is
 * allowed. With no argument it lists them: name, tab, what the message must hold. A second argument
 * is where wrong files are written.
 */

#include "ns3/applications-module.h"
#include "ns3/basic-energy-source-helper.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/resource-energy-model.h"
#include "ns3/resource-helper.h"

#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

using namespace ns3;

namespace
{

/// Two nodes with a link and addresses.
struct Pair
{
    Pair()
    {
        nodes.Create(2);
        devices = PointToPointHelper().Install(nodes);
        InternetStackHelper().Install(nodes);
        addresses = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
    }

    NodeContainer nodes;               //!< Nodes.
    NetDeviceContainer devices;        //!< Their devices.
    Ipv4InterfaceContainer addresses;  //!< Their addresses.
};

/// Something wrong, and what the message must hold.
struct Case
{
    std::string name;           //!< Name.
    std::string expected;       //!< Part of the message.
    std::function<void()> run;  //!< Does it.
};

/**
 * \return a router with one core
 */
ResourceHelper
OneCore()
{
    ResourceHelper helper;
    helper.AddPool("cpu", 1);
    helper.AddTaskUnit("core");
    helper.AddNeed("core", "cpu");
    return helper;
}

/**
 * Installs a router that something was done to.
 * \param change what
 */
void
InstallChanged(const std::function<void(ResourceHelper&)>& change)
{
    Pair pair;
    auto helper = OneCore();
    change(helper);
    helper.Install(pair.nodes.Get(0));
}

/// Where files are written that are wrong.
std::string g_file = "bad-input.json";

/// A router that is right, but for its last brace.
const std::string HEAD = R"({"format": "routecast router for ns-3", "version": 1, "name": "x", "pools": [], )";

/// A task unit without units.
const std::string TASK =
    R"({"name": "core", "needs": [], "per_packet_s": 1e-6, "per_byte_s": 0, "per_batch_s": 0, "variation": "",)"
    R"( "queue": 512, "parallel": 1, "batch": 1, "priority": 0, "weight": 1, "activation": "dedicated", "budget": 64,)"
    R"( "interrupt_cost_s": 0, "moderation_s": 0, "route": {"kind": "out", "to": [], "weights": [], "indirection": []}})";

/**
 * Reads a text as a router's file, and installs it.
 * \param text the text
 */
void
InstallText(const std::string& text)
{
    std::ofstream(g_file) << text;
    Pair pair;
    ResourceHelper::InstallFromFile(g_file, pair.nodes.Get(0));
}

/**
 * Reads a router with one task unit in which something is changed.
 * \param what a text of it
 * \param by what stands there instead
 */
void
InstallTask(const std::string& what, const std::string& by)
{
    const auto at = TASK.find(what);
    std::ostringstream text;
    text << HEAD << R"("tasks": [)" << TASK.substr(0, at) << by << TASK.substr(at + what.size()) << R"(], "ports": []})";
    InstallText(text.str());
}

/// What can be done wrong.
const std::vector<Case> CASES{
    {"unknown-pool",
     R"(there is no pool "gpu"; there are "cpu")",
     [] { InstallChanged([](auto& helper) { helper.AddNeed("core", "gpu"); }); }},
    {"unknown-task-unit",
     R"(there is no task unit "cor"; there are "core")",
     [] { InstallChanged([](auto& helper) { helper.SetServiceTable("cor", {{64, 1e-6}}); }); }},
    {"unknown-target",
     R"(way of task unit "core": there is no task unit "next"; there are "core")",
     [] { InstallChanged([](auto& helper) { helper.SetRoute("core", TaskUnit::SINGLE, {"next"}); }); }},
    {"circle",
     R"(node 0: packets come back to task unit "core"; ways must lead out of the router)",
     [] {
         InstallChanged([](auto& helper) {
             helper.AddTaskUnit("again");
             helper.SetRoute("core", TaskUnit::SINGLE, {"again"});
             helper.SetRoute("again", TaskUnit::SINGLE, {"core"});
         });
     }},
    {"zero-units", "got 0 units; allowed is 1 to 64", [] { ResourceHelper().AddPool("cpu", 0); }},
    {"too-many-units", "got 65 units; allowed is 1 to 64", [] { ResourceHelper().AddPool("cpu", 65); }},
    {"same-pool-twice",
     R"(pool "cpu": there is one of that name already)",
     [] { InstallChanged([](auto& helper) { helper.AddPool("cpu", 2); }); }},
    {"same-task-unit-twice",
     R"(task unit "core": there is one of that name already)",
     [] { InstallChanged([](auto& helper) { helper.AddTaskUnit("core"); }); }},
    {"need-beyond-pool",
     R"(task unit "big": it needs 2 units of pool "cpu" at once; allowed is 1 to 1)",
     [] {
         InstallChanged([](auto& helper) {
             helper.AddTaskUnit("big");
             helper.AddNeed("big", "cpu", 2);
         });
     }},
    {"need-twice",
     R"(it needs pool "cpu" twice)",
     [] { InstallChanged([](auto& helper) { helper.AddNeed("core", "cpu"); }); }},
    {"pin-beyond-pool",
     R"(it is pinned to unit 3 of pool "cpu"; allowed is 0 to 0)",
     [] {
         InstallChanged([](auto& helper) {
             helper.AddTaskUnit("pinned");
             helper.AddNeed("pinned", "cpu", 1, {3});
         });
     }},
    {"contention-of-nothing",
     "the factor of contention for 2 working units is 0: allowed is more than 0",
     [] {
         Pair pair;
         ResourceHelper helper;
         helper.AddPool("cpu", 2, {1.0, 0.0});
         helper.AddTaskUnit("core");
         helper.Install(pair.nodes.Get(0));
     }},
    {"parallel-polling",
     "Parallel is 2; allowed is 1 unless its activation is Dedicated",
     [] {
         InstallChanged([](auto& helper) {
             helper.SetTaskUnitAttribute("core", "Parallel", UintegerValue(2));
             helper.SetTaskUnitAttribute("core", "Activation", EnumValue(TaskUnit::POLLING));
         });
     }},
    {"falling-sizes",
     "row 2 of its service times is for 64 B after 128 B; sizes must rise",
     [] { InstallChanged([](auto& helper) { helper.SetServiceTable("core", {{128, 1e-6}, {64, 1e-6}}); }); }},
    {"weights",
     "a random way has a weight for each target; got 0 for 1",
     [] {
         InstallChanged([](auto& helper) {
             helper.AddTaskUnit("next");
             helper.SetRoute("core", TaskUnit::RANDOM, {"next"});
         });
     }},
    {"entry-beyond-devices",
     R"(node 0: entry "core" is of interface 7; there are 1, from 0)",
     [] { InstallChanged([](auto& helper) { helper.SetEntry("core", 7); }); }},
    {"no-task-unit", "node 0: its router has no task unit", [] {
         Pair pair;
         ResourceHelper().Install(pair.nodes.Get(0));
     }},
    {"no-devices",
     "node 0: it has no device but loopback; install devices first",
     [] {
         NodeContainer nodes;
         nodes.Create(1);
         InternetStackHelper().Install(nodes);
         OneCore().Install(nodes.Get(0));
     }},
    {"no-stack",
     "node 0: it has no IP stack; install one first",
     [] {
         NodeContainer nodes;
         nodes.Create(2);
         PointToPointHelper().Install(nodes);
         OneCore().Install(nodes.Get(0));
     }},
    {"second-install",
     "node 0: it has resources already; a node has them once",
     [] {
         Pair pair;
         OneCore().Install(pair.nodes.Get(0));
         OneCore().Install(pair.nodes.Get(0));
     }},
    {"on-two-nodes",
     "node 1: these resources are those of node 0 already",
     [] {
         Pair pair;
         OneCore().Install(pair.nodes.Get(0))->Install(pair.nodes.Get(1));
     }},
    {"device-later",
     "node 0: device 2 came after the node's resources; install devices first",
     [] {
         Pair pair;
         OneCore().Install(pair.nodes.Get(0));
         PointToPointHelper().Install(pair.nodes);
     }},
    {"address-later",
     "node 0: a packet reached IPv4 at interface 1 past the node's resources; give addresses before installing them",
     [] {
         NodeContainer nodes;
         nodes.Create(2);
         auto devices = PointToPointHelper().Install(nodes);
         InternetStackHelper().Install(nodes);
         OneCore().Install(nodes.Get(0));
         auto addresses = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
         UdpClientHelper client(addresses.GetAddress(0), 9);
         client.Install(nodes.Get(1)).Start(Seconds(1));
         Simulator::Stop(Seconds(3));
         Simulator::Run();
     }},
    {"pool-later",
     R"(pool "gpu": add pools before Install)",
     [] {
         Pair pair;
         auto router = OneCore().Install(pair.nodes.Get(0));
         router->AddPool(CreateObjectWithAttributes<ResourcePool>("Name", StringValue("gpu")));
     }},
    {"energy-of-another-node",
     "the source is of node 1, the router of node 0: allowed is the same node",
     [] {
         Pair pair;
         auto router = OneCore().Install(pair.nodes.Get(0));
         ResourceEnergyModel::Install(router, BasicEnergySourceHelper().Install(pair.nodes.Get(1)).Get(0));
     }},
    {"energy-twice",
     R"(pool "cpu" draws from a source already: allowed is one)",
     [] {
         Pair pair;
         auto router = OneCore().Install(pair.nodes.Get(0));
         auto source = BasicEnergySourceHelper().Install(pair.nodes.Get(0)).Get(0);
         ResourceEnergyModel::Install(router, source);
         ResourceEnergyModel::Install(router, source);
     }},
    {"energy-before-install",
     "the router is on no node: install it first",
     [] { ResourceEnergyModel::Install(CreateObject<RouterResources>(), nullptr); }},
    {"no-file",
     "cannot be read; it is what \"routecast export --format ns3\" writes",
     [] { ResourceHelper::FromFile("none/such.json"); }},
    {"no-json", "line 2: no JSON: expected :", [] { InstallText("{\n\"format\" 1}"); }},
    {"half-a-file", "no JSON: a text has no end", [] { InstallText(HEAD + R"("tas)"); }},
    {"too-deep", "no JSON: values within values are deeper than 32", [] { InstallText(std::string(100000, '[')); }},
    {"other-file", "format: got \"uti\"; expected what", [] { InstallText(R"({"format": "uti"})"); }},
    {"other-version",
     "version: expected a whole number from 1 to 1, got 2",
     [] { InstallText(R"({"format": "routecast router for ns-3", "version": 2})"); }},
    {"missing-key", "there is no key \"tasks\"", [] { InstallText(HEAD + R"("ports": []})"); }},
    {"unknown-key",
     "key \"sleep\" is unknown to this version of the module",
     [] { InstallText(HEAD + R"("tasks": [], "ports": [], "sleep": 1})"); }},
    {"wrong-kind", "tasks: expected an array", [] { InstallText(HEAD + R"("tasks": 1, "ports": []})"); }},
    {"out-of-range",
     "tasks[0].queue: expected a whole number from 1 to 1048576, got 0",
     [] { InstallTask("512", "0"); }},
    {"unknown-activation",
     "tasks[0].activation: got \"thread\"; allowed are dedicated, polling, interrupt",
     [] { InstallTask("dedicated", "thread"); }},
    {"ports-and-devices",
     "node 0: it has 1 devices, and the router of",
     [] {
         InstallText(HEAD + R"("tasks": [)" + TASK +
                     R"(], "ports": [{"name": "a", "link_bps": 1e9, "tx_ring": 512, "entry": "core"},)"
                     R"( {"name": "b", "link_bps": 1e9, "tx_ring": 512, "entry": "core"}]})");
     }},
    {"rss-key", "RSS key of 3 bytes: allowed is 40, or none", [] { CreateObject<RouterResources>()->SetRss({1, 2, 3}); }},
};

} // namespace

int
main(int argc, char* argv[])
{
    g_file = argc > 2 ? argv[2] : g_file;
    for (const Case& each : CASES)
    {
        if (argc < 2)
        {
            std::cout << each.name << "\t" << each.expected << "\n";
        }
        else if (each.name == argv[1])
        {
            each.run();
            std::cerr << "nothing was said\n";
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
