/*
 * Copyright (c) 2026 the routecast authors
 *
 * SPDX-License-Identifier: GPL-2.0-only
 */

#ifndef ROUTER_RESOURCES_COMPAT_H
#define ROUTER_RESOURCES_COMPAT_H

#include "ns3/deprecated.h"
#include "ns3/enum.h"
#include "ns3/test.h"

/**
 * \file
 * \ingroup router-resources
 * What differs between the releases of ns-3 that this module compiles with (3.37 to 3.44). Nothing else in the module
 * asks for a version.
 */

#ifdef NS_DEPRECATED_3_42
/// Accessor of an attribute that is an enumeration.
#define ROUTER_RESOURCES_ENUM_ACCESSOR(type, member) MakeEnumAccessor<type>(member)
/// How long a test takes: seconds.
#define ROUTER_RESOURCES_QUICK TestCase::Duration::QUICK
/// How long a test takes: minutes.
#define ROUTER_RESOURCES_EXTENSIVE TestCase::Duration::EXTENSIVE
/// A suite of unit tests.
#define ROUTER_RESOURCES_UNIT TestSuite::Type::UNIT
#else
#define ROUTER_RESOURCES_ENUM_ACCESSOR(type, member) MakeEnumAccessor(member)
#define ROUTER_RESOURCES_QUICK TestCase::QUICK
#define ROUTER_RESOURCES_EXTENSIVE TestCase::EXTENSIVE
#define ROUTER_RESOURCES_UNIT TestSuite::UNIT
#endif

namespace ns3
{
/// Where the energy framework is from 3.42 on; before that it is in ns3 itself.
namespace energy
{
}
using namespace energy;
} // namespace ns3

#endif // ROUTER_RESOURCES_COMPAT_H
